"""AlexNet: the network that won ImageNet's challenge of 2012."""

from __future__ import annotations

from bittern.networks.chain import (
    PLACES,
    Chain,
    Response,
    Row,
)

__all__ = ["AlexNet"]


class AlexNet(Chain):
    """4096 features by AlexNet, as in MatConvNet's imagenet-caffe-alex.mat.

    Images are 227 pixels a side, less the average image; five convolutions, of which the
    second, fourth and fifth are in two groups, and the two full layers.  The features are the
    seventh layer's, after the rectifier.

    ``weights`` is the path of that file; layers are as wide as the file has them, and without it
    the weights are random.

    Reference: [Krizhevsky-Sutskever-Hinton-2012].
    """

    name = "alexnet"
    title = "AlexNet"
    side = 227
    rows = (
        Row(96, 11, stride=4),
        Row(256, 5, around=2, groups=2),
        Row(384, 3, around=1),
        Row(384, 3, around=1, groups=2),
        Row(256, 3, around=1, groups=2),
        Row(4096, PLACES),
        Row(4096, 1),
    )
    response = Response(5, 1.0, 2e-5, 0.75)
