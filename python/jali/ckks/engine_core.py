"""The engine behind an Engine or an Evaluator: the choice of device and implementations."""

from __future__ import annotations

from collections.abc import Mapping

from jali._core import checks
from jali._core.console import choices_text
from jali._core.log import logger
from jali._jali.ckks import EngineCore, Params
from jali.device import checked_threads, resolved, tuned

__all__ = ["made"]


def made(
    params: Params,
    device: str,
    threads: int | None,
    trace: bool,
    variants: Mapping[str, str] | None,
) -> tuple[EngineCore, dict[str, str]]:
    """The engine, and the implementations that were chosen for it. Arguments and errors as of
    Evaluator."""
    checks.instance(params, Params, "params")
    if variants is None:
        device, variants = tuned(device, params.word, params.log_n)
    else:
        device = resolved(device)
    core = EngineCore(params, device, checked_threads(threads), trace, dict(variants))
    logger.info("engine made: %s, %s", core.engine, repr(params))
    if variants:
        logger.info("implementations: %s", choices_text(dict(variants)))
    on_cpu = core.engine.split("/")[0] == "cpu"
    if threads is not None and core.threads < threads and on_cpu:
        logger.warning("%d threads were asked for and %d work", threads, core.threads)
    return core, dict(variants)
