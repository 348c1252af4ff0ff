# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm: batch normalisation with the mean and variance of the samples of all ranks.

Forward: each rank computes the mean m_i and the sum of squared deviations S_i of its own n_i values per channel; one
allgather of (n, m, S) gives all of them, and every rank combines them in the same order (Chan, Golub, LeVeque:
Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979): mean = Σ n_i m_i / N,
S = Σ S_i + Σ n_i (m_i - mean)². No difference of large squares is taken.

Backward: with y = (x - mean) / σ the gradient of x needs Σ dy and Σ dy (x - mean) over all ranks: one allreduce.
The gradients of weight and bias stay those of the own samples, as the optimizer reduces them with all others.

Bytes: 2 C + 1 values to each rank forward and 2 C backward, in float32 (float64 for float64 inputs).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ronde.core import engine
from ronde.core.ops import Sum
from ronde.core.process_sets import ProcessSet, global_process_set, is_taking_part
from ronde.torch.allgather import allgather
from ronde.torch.allreduce import allreduce


class SyncBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation over the samples of all ranks of ``process_set``; elsewhere as ``torch.nn.BatchNorm1d`` to
    ``3d``, whose arguments and state it has.

    Input: (N, C, …) with the same C on all ranks; N may differ and may be 0 on some. In evaluation with running
    statistics, with one rank, and on a rank that is not in the set, nothing is exchanged. In training every rank must
    run forward and backward equally often. ``ValueError`` for an input of fewer than two dimensions, or if all ranks
    together give one value per channel.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm takes an input of at least 2 dimensions, not {input.dim()}")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        takes_batch = self.training or self.running_mean is None
        if not takes_batch or not self._has_others():
            return super().forward(input)
        output, mean, variance, count = _Normalise.apply(input, self.weight, self.bias, self.eps, self.process_set)
        if self.training and self.track_running_stats:
            self._track(mean, variance * (count / (count - 1)))
        return output

    def _has_others(self) -> bool:
        return engine.is_initialized() and is_taking_part(self.process_set) and self.process_set.size() > 1

    @torch.no_grad()
    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        self.num_batches_tracked += 1
        share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        self.running_var.lerp_(variance.to(self.running_var), share)

    @classmethod
    def convert_sync_batchnorm(cls, module: nn.Module, process_set: ProcessSet = global_process_set) -> nn.Module:
        """The module with each ``BatchNorm1d`` to ``3d`` in it replaced by a ``SyncBatchNorm`` with its state."""
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and not isinstance(module, cls):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_set,
            )
            converted.weight, converted.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.train(module.training)
            return converted
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_set))
        return module


def _over_channels(x: torch.Tensor) -> list[int]:
    """All dimensions but that of the channels."""
    return [0, *range(2, x.dim())]


def _along(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Values of the channels in the shape of ``x``."""
    return values.reshape(1, -1, *([1] * (x.dim() - 2)))


def _statistics(x: torch.Tensor, process_set: ProcessSet) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Mean and variance per channel over all ranks, and how many values each is of."""
    channels = x.shape[1]
    own = x.numel() // channels if channels else 0
    if own > 0:
        mean = x.mean(_over_channels(x))
        squares = ((x - _along(mean, x)) ** 2).sum(_over_channels(x))
    else:
        mean = squares = x.new_zeros(channels)
    table = allgather(torch.cat([x.new_tensor([float(own)]), mean, squares])[None], process_set=process_set)
    counts, means, all_squares = table[:, :1], table[:, 1 : 1 + channels], table[:, 1 + channels :]
    count = counts.sum()
    if count <= 1:
        raise ValueError(f"SyncBatchNorm in training needs more than one value per channel, not {int(count)}")
    mean = (counts * means).sum(0) / count
    squares = all_squares.sum(0) + (counts * (means - mean) ** 2).sum(0)
    return mean, squares / count, float(count)


class _Normalise(torch.autograd.Function):
    """(x - mean) / sqrt(variance + eps) * weight + bias; and mean, variance and count, which have no gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        process_set: ProcessSet,
    ):
        wide = x.double() if x.dtype is torch.float64 else x.float()
        mean, variance, count = _statistics(wide, process_set)
        inverse = torch.rsqrt(variance + eps)
        normal = (wide - _along(mean, x)) * _along(inverse, x)
        output = normal if weight is None else normal * _along(weight.to(wide), x) + _along(bias.to(wide), x)
        ctx.save_for_backward(x, weight, mean, inverse)
        ctx.count, ctx.process_set = count, process_set
        ctx.mark_non_differentiable(mean, variance)
        return output.to(x.dtype), mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, *_: Any):
        x, weight, mean, inverse = ctx.saved_tensors
        wide = gradient.to(mean.dtype)
        centred = x.to(mean.dtype) - _along(mean, x)
        sum_dy = wide.sum(_over_channels(x))
        sum_dy_centred = (wide * centred).sum(_over_channels(x))
        both = allreduce(torch.cat([sum_dy, sum_dy_centred]), op=Sum, process_set=ctx.process_set)
        all_dy, all_dy_centred = both.chunk(2)
        gradient_of_x = None
        if ctx.needs_input_grad[0]:
            slope = inverse if weight is None else inverse * weight.to(inverse)
            pull = _along(all_dy, x) + centred * _along(inverse**2 * all_dy_centred, x)
            gradient_of_x = (_along(slope, x) * (wide - pull / ctx.count)).to(x.dtype)
        if weight is None:
            return gradient_of_x, None, None, None, None
        return gradient_of_x, (sum_dy_centred * inverse).to(weight), sum_dy.to(weight), None, None
