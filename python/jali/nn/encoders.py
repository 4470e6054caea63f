"""Encoders of transformers: for arrays of NumPy, and for jali.compile."""

from __future__ import annotations

from jali.compiler.frontends.encoders import attention, encoder_layer, layer_norm

__all__ = ["attention", "encoder_layer", "layer_norm"]
