# SPDX-License-Identifier: Apache-2.0
"""Runs a command where memfd_create is forbidden, as in some containers: without_memfd.py COMMAND..."""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": 319, "aarch64": 279}  # of memfd_create
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def forbid_memfd() -> None:
    code = b"".join(
        [
            instruction(LOAD_WORD, 0, 0, 0),  # the number of the system call
            instruction(JUMP_IF_EQUAL, 0, 1, NUMBERS[platform.machine()]),
            instruction(RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
            instruction(RETURN, 0, 0, SECCOMP_RET_ALLOW),
        ]
    )
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(code) // 8, code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


forbid_memfd()
os.execvp(sys.argv[1], sys.argv[1:])
