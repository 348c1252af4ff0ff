# SPDX-License-Identifier: Apache-2.0
"""PyTorch's element types by the numbers of the engine."""

from __future__ import annotations

import torch

from ronde.core.ops import DTYPES

# An older PyTorch has no uint16.
CODE_OF = {getattr(torch, name): code for name, code in DTYPES.items() if hasattr(torch, name)}


def dtype_code(tensor: torch.Tensor) -> int:
    """The engine's number of the tensor's dtype; ``ValueError`` naming the dtype and the supported ones."""
    code = CODE_OF.get(tensor.dtype)
    if code is None:
        raise ValueError(f"tensors of {tensor.dtype} are not supported; supported are {', '.join(DTYPES)}")
    return code
