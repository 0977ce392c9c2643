"""A convolution with its batch normalisation and its rectifier, and the three made one."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["Convolution"]

WIDEST = 3  # columns of a depthwise kernel for whose gradient oneDNN has a quick way
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]  # of input, weight and bias
Wanted = tuple[bool, bool, bool]


class Convolution(nn.Module):
    """Convolution, batch normalisation, and then values cut to [0, ``most``].

    ``most`` may be infinite, and None leaves the values as they are.  Kernels have an odd side;
    half a kernel of zeros is put around, so that ``ceil(side / stride)`` places a side come out.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        most: float | None = math.inf,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.most = most
        self.conv = nn.Conv2d(
            n_in, n_out, kernel, stride, padding=kernel // 2, groups=groups, bias=False
        )
        self.norm: nn.BatchNorm2d | None = nn.BatchNorm2d(n_out, eps, momentum)

    def forward(self, x: Tensor) -> Tensor:
        """The values at every place."""
        if self.norm is None:
            return self._convolved(x, self.most)
        x = self.norm(self._convolved(x, None))
        if self.most is None:
            return x
        return F.relu_(x) if math.isinf(self.most) else F.hardtanh(x, 0.0, self.most)

    def _convolved(self, x: Tensor, most: float | None) -> Tensor:
        conv = self.conv
        step: Any = _Step.apply  # torch has no types for it
        y: Tensor = step(x, conv.weight, conv.bias, conv.stride[0], conv.groups, most)
        return y

    @torch.no_grad()
    def fold_(self) -> None:
        r"""Let the convolution do what the normalisation does with its running statistics.

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


class _Step(torch.autograd.Function):
    """Convolve and cut: torch's values, but its gradients sooner on a CPU.

    Kernels of one place are matrix products, values are cut in place, and the gradients of wide
    depthwise kernels, for which oneDNN has no quick way, are taken a few columns at a time.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: int,
        groups: int,
        most: float | None,
    ) -> Tensor:
        if _is_product(weight, stride, groups):
            y = F.linear(x.permute(0, 2, 3, 1), weight[:, :, 0, 0], bias).permute(0, 3, 1, 2)
        else:
            y = F.conv2d(x, weight, bias, stride, weight.shape[2] // 2, groups=groups)
        if most is not None:
            y.clamp_(0.0, most)
        ctx.save_for_backward(x, weight, None if most is None else y)
        ctx.stride, ctx.groups, ctx.most = stride, groups, most
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, y = ctx.saved_tensors
        wanted: Wanted = ctx.needs_input_grad[:3]
        if y is not None:
            g = torch.ops.aten.hardtanh_backward(g, y, 0.0, ctx.most)
        if _is_product(weight, ctx.stride, ctx.groups):
            gradients = _product_gradients(g, x, weight, wanted)
        elif weight.shape[1] == 1 < ctx.groups and weight.shape[3] > WIDEST:
            gradients = _depthwise_gradients(g, x, weight, ctx.stride, ctx.groups, wanted)
        else:
            around = weight.shape[2] // 2
            gradients = _gradients(g, x, weight, ctx.stride, around, ctx.groups, wanted)
        return *gradients, None, None, None


def _is_product(weight: Tensor, stride: int, groups: int) -> bool:
    return weight.shape[2:] == (1, 1) and stride == groups == 1


def _product_gradients(g: Tensor, x: Tensor, weight: Tensor, wanted: Wanted) -> Gradients:
    """Y = X Wᵀ + b with a row a place."""
    G, X = (a.permute(0, 2, 3, 1).flatten(0, 2) for a in (g, x))
    of_x = of_weight = None
    if wanted[0]:
        n, _, height, width = x.shape
        of_x = (G @ weight[:, :, 0, 0]).view(n, height, width, -1).permute(0, 3, 1, 2)
    if wanted[1]:
        of_weight = (G.T @ X)[:, :, None, None]
    return of_x, of_weight, G.sum(dim=0) if wanted[2] else None


def _depthwise_gradients(
    g: Tensor, x: Tensor, weight: Tensor, stride: int, groups: int, wanted: Wanted
) -> Gradients:
    """The weight's a few columns at a time: each piece of a kernel sees the input so far along."""
    of_x = of_weight = None
    around = weight.shape[2] // 2
    if wanted[0]:
        of_x, _, _ = _gradients(g, x, weight, stride, around, groups, (True, False, False))
    if wanted[1]:
        pieces = []
        for first in range(0, weight.shape[3], WIDEST):
            piece = weight[..., first : first + WIDEST]
            seen = _seen(x, g, piece, stride, (around, around - first))
            pieces.append(_gradients(g, seen, piece, stride, 0, groups, (False, True, False))[1])
        of_weight = torch.cat([piece for piece in pieces if piece is not None], dim=3)
    return of_x, of_weight, g.sum(dim=(0, 2, 3)) if wanted[2] else None


def _seen(x: Tensor, g: Tensor, piece: Tensor, stride: int, before: tuple[int, int]) -> Tensor:
    """What a piece of a kernel sees: so many rows and columns of zeros before, the rest after."""
    sides = zip(x.shape[2:], g.shape[2:], piece.shape[2:], before, strict=True)
    after = [(n - 1) * stride + kernel - side - zeros for side, n, kernel, zeros in sides]
    return F.pad(x, (before[1], after[1], before[0], after[0]))


def _gradients(
    g: Tensor, x: Tensor, weight: Tensor, stride: int, around: int, groups: int, wanted: Wanted
) -> Gradients:
    """As torch has them."""
    found: Gradients = torch.ops.aten.convolution_backward(
        g,
        x,
        weight,
        [len(weight)],
        [stride, stride],
        [around, around],
        [1, 1],
        False,
        [0, 0],
        groups,
        list(wanted),
    )
    return found
