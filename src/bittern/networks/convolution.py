"""A convolution with batch normalisation and a rectifier, and faster gradients for it on a CPU."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bittern.kernels.depthwise import CHANNELS, depthwise_weight_gradient
from bittern.parallel import run_blocks

WIDEST = 3  # columns of a depthwise kernel up to which oneDNN computes its gradient fast
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]  # of input, weight and bias
Wanted = tuple[bool, bool, bool]  # which of these gradients are needed


class NormalisedConvolution(nn.Module):
    """Convolution, batch normalisation, and a rectifier that clips values to [0, ``ceiling``].

    ``ceiling`` may be infinite; None means no rectifier.  Kernels have an odd side and are padded
    by half of it, so that the output has ``ceil(side / stride)`` positions per side.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        ceiling: float | None = math.inf,
    ) -> None:
        super().__init__()
        self.ceiling = ceiling
        self.conv = nn.Conv2d(
            n_in, n_out, kernel, stride, padding=kernel // 2, groups=groups, bias=False
        )
        self.norm: nn.BatchNorm2d | None = nn.BatchNorm2d(n_out)

    def forward(self, x: Tensor) -> Tensor:
        """The values at every position."""
        if self.norm is None:
            return self._convolved(x, self.ceiling)
        x = self.norm(self._convolved(x, None))
        if self.ceiling is None:
            return x
        return F.relu_(x) if math.isinf(self.ceiling) else F.hardtanh(x, 0.0, self.ceiling)

    def _convolved(self, x: Tensor, ceiling: float | None) -> Tensor:
        conv = self.conv
        step: Any = _ConvolveAndClip.apply  # torch does not type it
        y: Tensor = step(x, conv.weight, conv.bias, conv.stride[0], conv.groups, ceiling)
        return y

    def _get_name(self) -> str:
        """The name in ``repr``; hashers recognise their older checkpoints by it."""
        return "Convolution"

    @torch.no_grad()
    def fold_(self) -> None:
        r"""Fold the normalisation, with its running statistics, into the convolution.

        .. math:: \gamma \frac{w * x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta
            = (s w) * x + (\beta - s \mu), \qquad s = \gamma / \sqrt{\sigma^2 + \epsilon}.
        """
        norm = self.norm
        if norm is None:
            return
        assert norm.running_mean is not None and norm.running_var is not None
        s = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        self.conv.weight.mul_(s[:, None, None, None])
        self.conv.bias = nn.Parameter(norm.bias - s * norm.running_mean)
        self.norm = None


class _ConvolveAndClip(torch.autograd.Function):
    """Convolve and clip: torch's values, with gradients that are faster on a CPU.

    1×1 convolutions are matrix products, values are clipped in place, and the gradients of wide
    depthwise kernels, which oneDNN computes slowly, by a kernel of our own.  Otherwise all is
    computed in the input's precision; the gradients of weights come back in the weights' own.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: int,
        groups: int,
        ceiling: float | None,
    ) -> Tensor:
        dtype, weight = weight.dtype, weight.to(x.dtype)
        bias = None if bias is None else bias.to(x.dtype)
        if _is_product(weight, stride, groups):
            y = F.linear(x.permute(0, 2, 3, 1), weight[:, :, 0, 0], bias).permute(0, 3, 1, 2)
        else:
            y = F.conv2d(x, weight, bias, stride, weight.shape[2] // 2, groups=groups)
        if ceiling is not None:
            y.clamp_(0.0, ceiling)
        ctx.save_for_backward(x, weight, None if ceiling is None else y)
        ctx.stride, ctx.groups, ctx.ceiling, ctx.dtype = stride, groups, ceiling, dtype
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, y = ctx.saved_tensors
        wanted: Wanted = ctx.needs_input_grad[:3]
        if y is not None:
            g = torch.ops.aten.hardtanh_backward(g, y, 0.0, ctx.ceiling)
        if _is_product(weight, ctx.stride, ctx.groups):
            gradients = _product_gradients(g, x, weight, wanted)
        else:
            grid = _Grid(ctx.stride, weight.shape[2] // 2, ctx.groups)
            is_depthwise = weight.shape[1] == 1 < ctx.groups == len(weight)
            is_slow = is_depthwise and weight.shape[3] > WIDEST
            gradients_of = _depthwise_gradients if is_slow else _gradients
            full = torch.promote_types(x.dtype, torch.float32)  # what oneDNN is fast in
            gradients = gradients_of(g.to(full), x.to(full), weight.to(full), grid, wanted)
        dtypes = x.dtype, ctx.dtype, ctx.dtype
        return *map(_as, dtypes, gradients), None, None, None


class _Grid(NamedTuple):
    """Where a kernel is applied, and to which channels."""

    stride: int
    padding: int
    groups: int


def _as(dtype: torch.dtype, gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.to(dtype)


def _is_product(weight: Tensor, stride: int, groups: int) -> bool:
    return weight.shape[2:] == (1, 1) and stride == groups == 1


def _product_gradients(g: Tensor, x: Tensor, weight: Tensor, wanted: Wanted) -> Gradients:
    """Gradients of Y = X Wᵀ + b, one row for each position."""
    G, X = (a.permute(0, 2, 3, 1).flatten(0, 2) for a in (g, x))
    of_x = of_weight = None
    if wanted[0]:
        n, _, height, width = x.shape
        of_x = (G @ weight[:, :, 0, 0]).view(n, height, width, -1).permute(0, 3, 1, 2)
    if wanted[1]:
        of_weight = (G.T @ X)[:, :, None, None]
    return of_x, of_weight, G.sum(dim=0) if wanted[2] else None


def _depthwise_gradients(
    g: Tensor, x: Tensor, weight: Tensor, grid: _Grid, wanted: Wanted
) -> Gradients:
    """The weight's gradient by a kernel of our own, the channels divided among torch's threads."""
    of_x = of_weight = None
    if wanted[0]:
        of_x, _, _ = _gradients(g, x, weight, grid, (True, False, False))
    if wanted[1]:
        slopes, seen = (a.permute(0, 2, 3, 1).contiguous().numpy() for a in (g, x))
        found = np.empty((*weight.shape[2:], len(weight)), seen.dtype)

        def fill(first: int) -> None:
            part = found[:, :, first : first + CHANNELS]
            depthwise_weight_gradient(seen, slopes, grid.stride, grid.padding, first, part)

        run_blocks(fill, range(0, len(weight), CHANNELS), torch.get_num_threads())
        of_weight = torch.from_numpy(found).permute(2, 0, 1)[:, None]
    return of_x, of_weight, g.sum(dim=(0, 2, 3)) if wanted[2] else None


def _gradients(g: Tensor, x: Tensor, weight: Tensor, grid: _Grid, wanted: Wanted) -> Gradients:
    """Torch's own gradients."""
    stride, padding, groups = grid
    found: Gradients = torch.ops.aten.convolution_backward(
        g,
        x,
        weight,
        [len(weight)],
        [stride, stride],
        [padding, padding],
        [1, 1],
        False,
        [0, 0],
        groups,
        list(wanted),
    )
    return found
