/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting: the hot path. Arguments are positional and read by hand: parsing keywords would cost more than the
 * submit. */
#include "ext.h"

#include <stdlib.h>

/* Places in the tuple that describes one tensor. */
enum { kName, kOp, kDType, kDims, kInput, kOutput, kReduceOp, kRoot, kPrescale, kPostscale, kSet, kTensorFields };
/* Behind them: flags, and maybe splits. */
enum { kMostArguments = kTensorFields + 2 };

static int read_i32(PyObject* tuple, Py_ssize_t place, int32_t* out) {
  long long value = PyLong_AsLongLong(PyTuple_GetItem(tuple, place));
  if (value == -1 && PyErr_Occurred()) return -1;
  if (value < INT32_MIN || value > INT32_MAX) {
    PyErr_Format(PyExc_ValueError, "submit(): argument %zd is out of range: %lld", place, value);
    return -1;
  }
  *out = (int32_t)value;
  return 0;
}

static int read_pointer(PyObject* tuple, Py_ssize_t place, void** out) {
  *out = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, place));
  return *out == NULL && PyErr_Occurred() ? -1 : 0;
}

static int read_u32(PyObject* tuple, Py_ssize_t place, uint32_t* out) {
  unsigned long value = PyLong_AsUnsignedLong(PyTuple_GetItem(tuple, place));
  if (value == (unsigned long)-1 && PyErr_Occurred()) return -1;
  if (value > UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "submit(): argument %zd is out of range: %lu", place, value);
    return -1;
  }
  *out = (uint32_t)value;
  return 0;
}

static int read_double(PyObject* tuple, Py_ssize_t place, double* out) {
  *out = PyFloat_AsDouble(PyTuple_GetItem(tuple, place));
  return *out == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int read_name(PyObject* tuple, const char** out) {
  PyObject* name = PyTuple_GetItem(tuple, kName);
  *out = NULL;
  if (name == Py_None) return 0;
  char* text = NULL;
  /* TypeError if it is no bytes; ValueError if there is a null byte in it, behind which names would not differ. */
  if (PyBytes_AsStringAndSize(name, &text, NULL) != 0) return -1;
  *out = text;
  return 0;
}

static int read_dims(PyObject* tuple, ronde_tensor* tensor, int64_t* dims) {
  PyObject* shape = PyTuple_GetItem(tuple, kDims);
  if (!PyTuple_Check(shape)) {
    PyErr_SetString(PyExc_TypeError, "submit(): dims must be a tuple of ints");
    return -1;
  }
  Py_ssize_t count = PyTuple_Size(shape);
  if (count > kMaxDims) {
    PyErr_Format(PyExc_ValueError, "a tensor of %zd dimensions: at most %d are supported", count, (int)kMaxDims);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  tensor->ndim = (int32_t)count;
  tensor->dims = dims;
  return 0;
}

/* Fills `tensor` from the first kTensorFields items of `tuple`, whose size the caller has checked. `dims` must live as
 * long. */
static int read_tensor(PyObject* tuple, ronde_tensor* tensor, int64_t* dims) {
  void* input;
  tensor->struct_size = sizeof *tensor;
  if (read_name(tuple, &tensor->name) != 0 || read_i32(tuple, kOp, &tensor->op) != 0 ||
      read_i32(tuple, kDType, &tensor->dtype) != 0 || read_dims(tuple, tensor, dims) != 0 ||
      read_pointer(tuple, kInput, &input) != 0 || read_pointer(tuple, kOutput, &tensor->output) != 0 ||
      read_i32(tuple, kReduceOp, &tensor->reduce_op) != 0 || read_i32(tuple, kRoot, &tensor->root) != 0 ||
      read_double(tuple, kPrescale, &tensor->prescale) != 0 ||
      read_double(tuple, kPostscale, &tensor->postscale) != 0 || read_u32(tuple, kSet, &tensor->set) != 0) {
    return -1;
  }
  tensor->input = input;
  return 0;
}

/* Of the tuple or None at `place`; *out is to be freed. */
static int read_splits(PyObject* tuple, Py_ssize_t place, ronde_tensor* tensor, int64_t** out) {
  PyObject* splits = PyTuple_GetItem(tuple, place);
  if (splits == Py_None) return 0;
  if (!PyTuple_Check(splits) || PyTuple_Size(splits) > INT32_MAX) {
    PyErr_SetString(PyExc_TypeError, "submit(): splits must be a tuple of ints or None");
    return -1;
  }
  Py_ssize_t count = PyTuple_Size(splits);
  *out = calloc((size_t)count + 1, sizeof **out);
  if (*out == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    (*out)[i] = PyLong_AsLongLong(PyTuple_GetItem(splits, i));
    if ((*out)[i] == -1 && PyErr_Occurred()) return -1;
  }
  tensor->splits = *out;
  tensor->split_count = (int32_t)count;
  return 0;
}

static PyObject* submit_one(PyObject* module, PyObject* args, int64_t** splits) {
  ronde_tensor tensor = {0};
  int64_t dims[kMaxDims];
  int32_t flags;
  if (read_tensor(args, &tensor, dims) != 0 || read_i32(args, kTensorFields, &flags) != 0) return NULL;
  if (PyTuple_Size(args) > kMostArguments - 1 && read_splits(args, kTensorFields + 1, &tensor, splits) != 0)
    return NULL;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  int64_t handle = 0;
  int code = ronde_submit(engine, &tensor, 1, (uint32_t)flags, &handle);
  if (code != RONDE_OK) return raise_code(module, code);
  return PyLong_FromLongLong(handle);
}

PyObject* ext_submit(PyObject* module, PyObject* args) {
  if (PyTuple_Size(args) < kMostArguments - 1 || PyTuple_Size(args) > kMostArguments) {
    PyErr_Format(PyExc_TypeError, "submit() takes %d or %d arguments (%zd given)", (int)kMostArguments - 1,
                 (int)kMostArguments, PyTuple_Size(args));
    return NULL;
  }
  int64_t* splits = NULL;
  PyObject* handle = submit_one(module, args, &splits);
  free(splits);
  return handle;
}

typedef struct {
  ronde_tensor tensor;
  int64_t handle;
  int64_t dims[kMaxDims];
} GroupSlot;

static int read_group(PyObject* list, Py_ssize_t count, GroupSlot* slots) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GetItem(list, i);
    if (!PyTuple_Check(item) || PyTuple_Size(item) != kTensorFields) {
      PyErr_Format(PyExc_TypeError, "submit_group(): item %zd must be a tuple of %d", i, (int)kTensorFields);
      return -1;
    }
    if (read_tensor(item, &slots[i].tensor, slots[i].dims) != 0) return -1;
  }
  return 0;
}

static PyObject* submit_slots(PyObject* module, GroupSlot* slots, Py_ssize_t count, uint32_t flags) {
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  ronde_tensor* tensors = calloc((size_t)count + 1, sizeof *tensors);
  int64_t* handles = calloc((size_t)count + 1, sizeof *handles);
  PyObject* result = NULL;
  if (tensors == NULL || handles == NULL) {
    PyErr_NoMemory();
  } else {
    for (Py_ssize_t i = 0; i < count; ++i) tensors[i] = slots[i].tensor;
    int code = ronde_submit(engine, tensors, (size_t)count, flags, handles);
    result = code == RONDE_OK ? PyList_New(count) : raise_code(module, code);
    for (Py_ssize_t i = 0; result != NULL && i < count; ++i) {
      PyObject* handle = PyLong_FromLongLong(handles[i]);
      if (handle == NULL || PyList_SetItem(result, i, handle) != 0) Py_CLEAR(result);
    }
  }
  free(tensors);
  free(handles);
  return result;
}

PyObject* ext_submit_group(PyObject* module, PyObject* args) {
  PyObject* list;
  unsigned int flags;
  if (!PyArg_ParseTuple(args, "O!I:submit_group", &PyList_Type, &list, &flags)) return NULL;
  Py_ssize_t count = PyList_Size(list);
  GroupSlot* slots = calloc((size_t)count + 1, sizeof *slots);
  if (slots == NULL) return PyErr_NoMemory();
  PyObject* result = read_group(list, count, slots) == 0 ? submit_slots(module, slots, count, flags) : NULL;
  free(slots);
  return result;
}

PyObject* ext_add_set(PyObject* module, PyObject* ranks) {
  if (!PyTuple_Check(ranks)) {
    PyErr_SetString(PyExc_TypeError, "add_set(): ranks must be a tuple of ints");
    return NULL;
  }
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  Py_ssize_t count = PyTuple_Size(ranks);
  int32_t* numbers = calloc((size_t)count + 1, sizeof *numbers);
  if (numbers == NULL) return PyErr_NoMemory();
  PyObject* result = NULL;
  Py_ssize_t read = 0;
  while (read < count && read_i32(ranks, read, &numbers[read]) == 0) ++read;
  if (read == count) {
    int64_t handle = 0;
    int code = ronde_add_set(engine, numbers, (size_t)count, &handle);
    result = code == RONDE_OK ? PyLong_FromLongLong(handle) : raise_code(module, code);
  }
  free(numbers);
  return result;
}

PyObject* ext_remove_set(PyObject* module, PyObject* number) {
  unsigned long set = PyLong_AsUnsignedLong(number);
  if (set == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  int64_t handle = 0;
  int code = ronde_remove_set(engine, (uint32_t)set, &handle);
  if (code != RONDE_OK) return raise_code(module, code);
  return PyLong_FromLongLong(handle);
}

PyObject* ext_flush(PyObject* module, PyObject* unused) {
  (void)unused;
  ronde_engine* engine = engine_of(module);
  if (engine == NULL) return NULL;
  int code = ronde_flush(engine);
  if (code != RONDE_OK) return raise_code(module, code);
  Py_RETURN_NONE;
}
