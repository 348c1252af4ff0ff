/* SPDX-License-Identifier: Apache-2.0 */
/* The Python binding of libronde.so: what its files share. One engine per process, held in the module's state.
 *
 * Hand-written C against the limited API, so that one file serves every CPython from 3.9 on. It knows no framework:
 * tensors arrive as addresses, dtypes as the numbers of ronde.h. The policy (names, defaults, lifetimes) is in
 * python/ronde. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ronde/ronde.h>

enum { kCodeCount = RONDE_INTERRUPTED + 1, kMaxDims = 16 };

typedef struct {
  ronde_engine* engine; /* NULL until the first init; kept after shutdown, when it answers NOT_INITIALIZED */
  PyObject* exceptions[kCodeCount]; /* by ronde_code; NULL: RuntimeError */
} ExtState;

/* The engine, or NULL with a Python exception set if init was never called. */
ronde_engine* engine_of(PyObject* module);
/* Sets the exception of `code` with the text of ronde_last_error(). Returns NULL. */
PyObject* raise_code(PyObject* module, int code);
/* The same with a text of the binding's own. */
PyObject* raise_text(PyObject* module, int code, const char* text);

/* submit.c */
PyObject* ext_submit(PyObject* module, PyObject* args);
PyObject* ext_submit_group(PyObject* module, PyObject* args);
PyObject* ext_add_set(PyObject* module, PyObject* ranks);
PyObject* ext_remove_set(PyObject* module, PyObject* number);
PyObject* ext_flush(PyObject* module, PyObject* unused);

/* wait.c */
PyObject* ext_poll(PyObject* module, PyObject* handle);
PyObject* ext_wait(PyObject* module, PyObject* args);
PyObject* ext_take_output(PyObject* module, PyObject* handle);
