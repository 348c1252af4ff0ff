# SPDX-License-Identifier: Apache-2.0
"""Smaller elements on the way between ranks.

A compressor has two static methods: ``compress(tensor) → (tensor, context)`` and ``decompress(tensor, context) →
tensor``. Any class that has them may be given as ``compression=``.
"""

from __future__ import annotations

from typing import Any

import torch


class Compressor:
    """What a compressor has to offer."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """What travels, and what ``decompress`` needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        """The tensor as it was before, in dtype and shape."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor


class _CastCompressor(Compressor):
    """Sends floating-point tensors in another floating type; the context is the original dtype. Others stay as they
    are.
    """

    dtype: torch.dtype

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return (tensor.to(cls.dtype) if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor.to(context)


class FP16Compressor(_CastCompressor):
    """float16: 11 bits of precision, largest value 65504."""

    dtype = torch.float16


class BF16Compressor(_CastCompressor):
    """bfloat16: 8 bits of precision, the range of float32."""

    dtype = torch.bfloat16


class Compression:
    """The compressors that come with Ronde."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


_BUILT_IN = (NoneCompressor, FP16Compressor, BF16Compressor)


def is_unchanged(compression: Any, tensor: torch.Tensor, compressed: torch.Tensor) -> bool:
    """Whether ``compressed`` is ``tensor`` as it was, so that there is nothing to decompress. Other people's
    compressors may have worked in place.
    """
    return compressed is tensor and compression in _BUILT_IN
