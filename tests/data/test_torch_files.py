"""Files of tensors in PyTorch's old format, read without PyTorch and compared with it."""

import collections
import pickle
import re

import numpy as np
import pytest

import bittern as bt
from bittern.io.torch_files import MAGIC, VERSION, read_tensors

torch = pytest.importorskip("torch")


def save(thing, path):
    torch.save(thing, path, _use_new_zipfile_serialization=False)
    return path


def test_tensors_are_torch_s(tmp_path):
    whole = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    tensors = {
        "whole": whole,
        "transposed": whole.permute(2, 0, 1),  # views of one storage
        "part": whole[1, 1:3, ::2],
        "scalar": torch.tensor(7),
        "counts": torch.tensor([2**40, -1]),
    }
    path = save(collections.OrderedDict(tensors), tmp_path / "a.pth")
    found = read_tensors(path)
    theirs = torch.load(path, weights_only=True)
    assert list(found) == list(tensors)
    for name, array in found.items():
        expected = theirs[name].numpy()
        assert array.dtype == expected.dtype and array.flags.c_contiguous
        np.testing.assert_array_equal(array, expected)


class Evil:
    """Prints when it is unpickled."""

    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a readable PyTorch file of tensors"),
        (b"PK\3\4 a zip file", "not a readable PyTorch file of tensors"),
        (pickle.dumps([1, 2]), "is not a PyTorch file in the format before version 1.6"),
        (pickle.dumps(Evil()), "asks for 'builtins.print'; a file of tensors must not run code"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, content, says, capsys):
    path = tmp_path / "a.pth"
    path.write_bytes(content)
    with pytest.raises(bt.FileError, match=rf"^{re.escape(str(path))}: {says}"):
        read_tensors(path)
    assert capsys.readouterr().out == ""


def test_cut_files_and_false_views_are_refused(tmp_path):
    path = save({"a": torch.zeros(8), "b": torch.ones(3)}, tmp_path / "a.pth")
    whole = path.read_bytes()
    for n in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:n])
        with pytest.raises(bt.FileError):
            read_tensors(path)
    head = pickle.dumps(MAGIC, 2) + pickle.dumps(VERSION, 2)
    path.write_bytes(head + pickle.dumps({"little_endian": False}, 2))
    with pytest.raises(bt.FileError, match="another order of bytes"):
        read_tensors(path)
    stretched = whole.replace(b"K\x08\x85q", b"K\x20\x85q", 1)  # a shape of 32 values
    assert stretched != whole
    path.write_bytes(stretched)
    with pytest.raises(bt.FileError, match="exceeds its storage"):
        read_tensors(path)
