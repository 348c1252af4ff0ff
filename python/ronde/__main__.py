# SPDX-License-Identifier: Apache-2.0
"""``python -m ronde run -np 2 …``"""

from ronde.program import main

main()
