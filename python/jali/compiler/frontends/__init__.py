"""Models in, traced graphs out: functions, PyTorch, scikit-learn, ONNX."""
