"""Trains the network of `jali demo digits` on scikit-learn's bundled 8x8 digits.

    pip install torch scikit-learn
    python tools/train/train_digits.py

The test split is the 360 images that jali.demo.split.digits_test_indices names; neither network is
trained on them. The shipped weights were trained with --seed 7 on the CPU. They classify 98.3 % of
the test images and 99.4 % of the others correctly; the largest pre-activations are 2.65 and 5.19,
and the largest logit is 13.7.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from square_net import ConvNet, SquareNet, accuracy, report_and_save, train

DEMO = Path(__file__).resolve().parents[2] / "python" / "jali" / "demo"


def test_indices():
    """The indices of the test split, read from the demo's own file, so that jali need not be
    installed."""
    spec = importlib.util.spec_from_file_location("jali_demo_split", DEMO / "split.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.digits_test_indices()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=DEMO / "weights" / "digits.npz")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--teacher-epochs", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=400)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    digits = load_digits()
    x = torch.from_numpy(digits.images.astype(np.float32) / 16)
    y = torch.from_numpy(digits.target.astype(np.int64))
    test = np.zeros(len(x), bool)
    test[test_indices()] = True
    test = torch.from_numpy(test)
    x_train, y_train, x_test, y_test = x[~test], y[~test], x[test], y[test]
    bend = {"angle": 10, "scale": 0.1, "shear": 0.1, "shift": 0.7, "elastic": 0.25}
    teacher = train(
        ConvNet(8),
        x_train,
        y_train,
        epochs=args.teacher_epochs,
        rate=2e-3,
        decay=1e-3,
        augmentation=bend,
        seed=args.seed,
        batch=50,
    )
    print(f"teacher: test accuracy {accuracy(teacher, x_test, y_test):.4f}")
    torch.manual_seed(args.seed + 1)
    student = train(
        SquareNet(8, kernel=4, stride=2, maps=16, hidden=64, pad=(1, 1, 1, 1)),
        x_train,
        y_train,
        epochs=args.epochs,
        rate=1e-3,
        decay=1e-3,
        augmentation=bend,
        seed=args.seed + 1,
        teacher=teacher,
        batch=50,
        temperature=1.5,
    )
    report_and_save(student, args.out, x_train, y_train, x_test, y_test, stride=2, pad=(1, 1, 1, 1))


if __name__ == "__main__":
    main()
