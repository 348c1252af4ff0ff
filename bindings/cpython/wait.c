/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a handle, and taking what the engine has allocated. */
#include "ext.h"

#include <time.h>

/* How long a wait stays in C before signal handlers get a turn. */
static const double kSliceSeconds = 0.1;
static const char kOwnerName[] = "ronde.output";

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

PyObject* ext_poll(PyObject* module, PyObject* handle) {
  long long number = PyLong_AsLongLong(handle);
  if (number == -1 && PyErr_Occurred()) return NULL;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  int state = ronde_poll(engine, number);
  if (state < 0)
    return raise_code(module, ronde_is_running(engine) == 1 ? RONDE_INVALID_ARGUMENT : RONDE_NOT_INITIALIZED);
  return PyBool_FromLong(state);
}

/* Ctrl-C leaves with KeyboardInterrupt between two slices; the handle lives on and may be waited for again. */
PyObject* ext_wait(PyObject* module, PyObject* args) {
  long long handle;
  double seconds;
  if (!PyArg_ParseTuple(args, "Ld:wait", &handle, &seconds)) return NULL;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  double deadline = seconds < 0 ? 0 : now_seconds() + seconds;
  for (;;) {
    double slice = kSliceSeconds;
    if (seconds >= 0) {
      double left = deadline - now_seconds();
      slice = left < 0 ? 0 : left < slice ? left : slice;
    }
    int code;
    Py_BEGIN_ALLOW_THREADS code = ronde_wait(engine, handle, slice);
    Py_END_ALLOW_THREADS if (code == RONDE_OK) Py_RETURN_TRUE;
    if (code != RONDE_INTERRUPTED) return raise_code(module, code);
    if (PyErr_CheckSignals() != 0) return NULL;
    if (seconds >= 0 && now_seconds() >= deadline) Py_RETURN_FALSE;
  }
}

static void free_owner(PyObject* capsule) {
  ronde_free(PyCapsule_GetPointer(capsule, kOwnerName));
}

static PyObject* tuple_of(const int64_t* values, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple != NULL && i < count; ++i) {
    PyObject* value = PyLong_FromLongLong(values[i]);
    if (value == NULL || PyTuple_SetItem(tuple, i, value) != 0) Py_CLEAR(tuple);
  }
  return tuple;
}

/* (address, bytes, dims, first_dims, owner); takes over `output->data`. An output without bytes may have no address. */
static PyObject* describe(const ronde_output* output) {
  PyObject* owner = Py_None;
  if (output->data != NULL) {
    owner = PyCapsule_New(output->data, kOwnerName, free_owner);
    if (owner == NULL) {
      ronde_free(output->data);
      return NULL;
    }
  } else {
    Py_INCREF(owner);
  }
  PyObject* dims = tuple_of(output->dims, output->ndim);
  PyObject* rows = tuple_of(output->first_dims, output->first_dims == NULL ? 0 : output->member_count);
  PyObject* address = PyLong_FromVoidPtr(output->data);
  PyObject* result = NULL;
  if (dims != NULL && rows != NULL && address != NULL) {
    result = Py_BuildValue("(OLOOO)", address, (long long)output->bytes, dims, rows, owner);
  }
  Py_XDECREF(address);
  Py_XDECREF(dims);
  Py_XDECREF(rows);
  Py_DECREF(owner);
  return result;
}

PyObject* ext_take_output(PyObject* module, PyObject* handle) {
  long long number = PyLong_AsLongLong(handle);
  if (number == -1 && PyErr_Occurred()) return NULL;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  ronde_output output = {.struct_size = sizeof output};
  int code = ronde_take_output(engine, number, &output);
  if (code != RONDE_OK) return raise_code(module, code);
  return describe(&output);
}
