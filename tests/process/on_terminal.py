# SPDX-License-Identifier: Apache-2.0
"""Takes the terminal on its standard input for its session's own and becomes the program that its arguments name."""

import fcntl
import os
import signal
import sys
import termios

signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], ["ronde", *sys.argv[2:]])
