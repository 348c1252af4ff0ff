# SPDX-License-Identifier: Apache-2.0
"""What all framework adapters share: the engine of this process, operations, errors, objects, optimizer bookkeeping.

Nothing here imports a framework.
"""
