# SPDX-License-Identifier: Apache-2.0
"""Pickling of users' objects."""

from __future__ import annotations

import pickle
from typing import Any


def dumps(value: Any) -> bytes:
    """Pickles with cloudpickle where it is installed (functions and classes of ``__main__``), else with pickle."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return cloudpickle.dumps(value)
