"""VGG-F: the fast one of three networks that were compared in 2014, and of many hashing papers."""

from __future__ import annotations

from bittern.networks.chain import (
    PLACES,
    Chain,
    Response,
    Row,
)

__all__ = ["VGGF"]


class VGGF(Chain):
    """4096 features by VGG-F (CNN-F), as in MatConvNet's imagenet-vgg-f.mat.

    Images are 224 pixels a side, less the average image; five convolutions without groups,
    and the two full layers.  The features are the seventh layer's, after the rectifier.

    ``weights`` is the path of that file; layers are as wide as the file has them, and without it
    the weights are random.

    Reference: [Chatfield-Simonyan-Vedaldi-Zisserman-2014].
    """

    name = "vgg-f"
    title = "VGG-F"
    side = 224
    rows = (
        Row(64, 11, stride=4),
        Row(256, 5, around=2),
        Row(256, 3, around=1),
        Row(256, 3, around=1),
        Row(256, 3, around=1),
        Row(4096, PLACES),
        Row(4096, 1),
    )
    response = Response(5, 2.0, 1e-4, 0.75)
