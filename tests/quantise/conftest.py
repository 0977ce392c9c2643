"""Quick codewords: the tests are about how they are used, not about how good they are."""

import pytest

from bittern.quantise import product


@pytest.fixture(autouse=True, scope="session")
def few_rounds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "N_ITERATIONS", 4)
        patch.setattr(product, "N_ROTATIONS", 2)
        yield
