/* SPDX-License-Identifier: Apache-2.0 */
/* ronde._ext: life of the engine, what it tells about itself, and the table of functions. */
#include "ext.h"

static ExtState* state_of(PyObject* module) {
  return (ExtState*)PyModule_GetState(module);
}

PyObject* raise_text(PyObject* module, int code, const char* text) {
  PyObject* cls = NULL;
  if (code > RONDE_OK && code < kCodeCount) cls = state_of(module)->exceptions[code];
  PyErr_SetString(cls != NULL ? cls : PyExc_RuntimeError, text);
  return NULL;
}

PyObject* raise_code(PyObject* module, int code) {
  return raise_text(module, code, ronde_last_error());
}

ronde_engine* engine_of(PyObject* module) {
  ronde_engine* engine = state_of(module)->engine;
  if (engine == NULL) raise_text(module, RONDE_NOT_INITIALIZED, "Ronde is not initialised: call init() first");
  return engine;
}

/* set_exceptions(classes): one class per ronde_code, in the order of their numbers; None where there is none. */
static PyObject* ext_set_exceptions(PyObject* module, PyObject* classes) {
  if (!PyTuple_Check(classes) || PyTuple_Size(classes) != kCodeCount) {
    PyErr_Format(PyExc_ValueError, "set_exceptions() takes a tuple of %d classes", (int)kCodeCount);
    return NULL;
  }
  ExtState* state = state_of(module);
  for (int code = 0; code < kCodeCount; ++code) {
    PyObject* cls = PyTuple_GetItem(classes, code);
    PyObject* old = state->exceptions[code];
    state->exceptions[code] = cls == Py_None ? NULL : cls;
    if (cls != Py_None) Py_INCREF(cls);
    Py_XDECREF(old);
  }
  Py_RETURN_NONE;
}

static PyObject* ext_init(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = NULL;
  int code;
  Py_BEGIN_ALLOW_THREADS code = ronde_init(&engine);
  Py_END_ALLOW_THREADS if (code != RONDE_OK) return raise_code(module, code);
  state_of(module)->engine = engine;
  Py_RETURN_NONE;
}

static PyObject* ext_shutdown(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = state_of(module)->engine;
  if (engine == NULL) Py_RETURN_NONE;
  int code;
  Py_BEGIN_ALLOW_THREADS code = ronde_shutdown(engine);
  Py_END_ALLOW_THREADS if (code != RONDE_OK) return raise_code(module, code);
  Py_RETURN_NONE;
}

static PyObject* ext_is_running(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = state_of(module)->engine;
  return PyBool_FromLong(engine != NULL && ronde_is_running(engine) == 1);
}

static PyObject* ext_topology(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  ronde_topology t = {.struct_size = sizeof t};
  int code = ronde_get_topology(engine, &t);
  if (code != RONDE_OK) return raise_code(module, code);
  return Py_BuildValue("(iiiiiiiI)", t.rank, t.size, t.local_rank, t.local_size, t.cross_rank, t.cross_size,
                       t.is_homogeneous, t.epoch);
}

static PyObject* ext_tell_failure(PyObject* module, PyObject* args) {
  int kind;
  const char* text;
  if (!PyArg_ParseTuple(args, "is:tell_failure", &kind, &text)) return NULL;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  int code = ronde_tell_failure(engine, kind, text);
  if (code != RONDE_OK) return raise_code(module, code);
  Py_RETURN_NONE;
}

static PyObject* ext_counters(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  ronde_counters c = {.struct_size = sizeof c};
  int code = ronde_get_counters(engine, &c);
  if (code != RONDE_OK) return raise_code(module, code);
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "batches", (unsigned long long)c.batches, "tensors",
                       (unsigned long long)c.tensors, "control_bytes_sent", (unsigned long long)c.control_bytes_sent,
                       "control_bytes_received", (unsigned long long)c.control_bytes_received, "full_requests",
                       (unsigned long long)c.full_requests, "wakeups", (unsigned long long)c.wakeups, "data_bytes_sent",
                       (unsigned long long)c.data_bytes_sent);
}

static PyObject* ext_transport(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  const char* reason = "";
  const char* name = ronde_transport(engine, &reason);
  if (name == NULL) return raise_code(module, RONDE_NOT_INITIALIZED);
  return Py_BuildValue("(ss)", name, reason != NULL ? reason : "");
}

static PyObject* ext_version(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyUnicode_FromString(ronde_version());
}

static PyMethodDef kMethods[] = {
    {"set_exceptions", ext_set_exceptions, METH_O, "set_exceptions(classes): one exception class per error code."},
    {"init", ext_init, METH_NOARGS, "init(): starts the engine; waits until all ranks have arrived."},
    {"shutdown", ext_shutdown, METH_NOARGS, "shutdown(): leaves the job; idempotent."},
    {"is_running", ext_is_running, METH_NOARGS, "is_running() -> bool"},
    {"topology", ext_topology, METH_NOARGS,
     "topology() -> (rank, size, local_rank, local_size, cross_rank, cross_size, is_homogeneous, epoch)"},
    {"submit", ext_submit, METH_VARARGS,
     "submit(name: bytes|None, op, dtype, dims, input, output, reduce_op, root, prescale, postscale, set, flags, "
     "splits: tuple|None = None) -> handle\n\nAddresses are ints; the memory stays valid and untouched until the "
     "handle is complete."},
    {"submit_group", ext_submit_group, METH_VARARGS,
     "submit_group(tensors, flags) -> list of handles; each tensor is the first 11 arguments of submit()."},
    {"add_set", ext_add_set, METH_O, "add_set(ranks: tuple) -> handle; its output is the number of the set, an int64."},
    {"remove_set", ext_remove_set, METH_O, "remove_set(number) -> handle"},
    {"flush", ext_flush, METH_NOARGS, "flush(): sends what was submitted with MORE."},
    {"poll", ext_poll, METH_O, "poll(handle) -> bool: complete, with or without an error."},
    {"wait", ext_wait, METH_VARARGS,
     "wait(handle, seconds) -> bool: True: complete; False: the time passed and the handle lives on. Negative: no "
     "limit. "
     "Without the GIL; signal handlers run ten times a second."},
    {"take_output", ext_take_output, METH_O,
     "take_output(handle) -> (address, bytes, dims, first_dims, owner): an output that the engine has allocated; freed "
     "with "
     "owner."},
    {"tell_failure", ext_tell_failure, METH_VARARGS,
     "tell_failure(code, text): why this process is about to end; code 0 if it is no error of Ronde's."},
    {"counters", ext_counters, METH_NOARGS, "counters() -> dict since init"},
    {"transport", ext_transport, METH_NOARGS, "transport() -> ('shm' or 'tcp', why not shm)"},
    {"version", ext_version, METH_NOARGS, "version() -> str"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT, "_ext", "Python binding of libronde.so", sizeof(ExtState), kMethods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__ext(void);
PyMODINIT_FUNC PyInit__ext(void) {
  PyObject* module = PyModule_Create(&kModule);
  if (module == NULL) return NULL;
  if (PyModule_AddIntConstant(module, "MORE", RONDE_MORE) != 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
