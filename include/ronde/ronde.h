/* SPDX-License-Identifier: Apache-2.0 */
/* Ronde's C interface: the only exported symbols of libronde.so.
 *
 * Every struct begins with struct_size, which the caller sets to sizeof of what it was compiled with; fields are only
 * ever added at the end. Functions return a ronde_code; the text of the calling thread's last error is
 * ronde_last_error(). Functions that take an engine may be called from any thread. Strings are UTF-8. */
#ifndef RONDE_RONDE_H
#define RONDE_RONDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDE_API __attribute__((visibility("default")))

typedef struct ronde_engine ronde_engine;

typedef enum {
  RONDE_OK = 0,
  RONDE_INVALID_ARGUMENT = 1,
  RONDE_NOT_INITIALIZED = 2,
  RONDE_MISMATCH = 3,
  RONDE_PEER_LOST = 4,
  RONDE_TIMEOUT = 5,
  RONDE_ABORTED = 6,
  RONDE_UNSUPPORTED = 7,
  RONDE_RESOURCE_EXHAUSTED = 8,
  RONDE_SYSTEM = 9,
  RONDE_INTERNAL = 10,
  RONDE_RANK_LEFT = 11,
  RONDE_INTERRUPTED = 12
} ronde_code;

typedef enum {
  RONDE_F32 = 0,
  RONDE_F64 = 1,
  RONDE_F16 = 2,
  RONDE_BF16 = 3,
  RONDE_I32 = 4,
  RONDE_I64 = 5,
  RONDE_U8 = 6,
  RONDE_BOOL = 7,
  RONDE_I8 = 8,
  RONDE_I16 = 9,
  RONDE_U16 = 10,
  RONDE_C64 = 11, /* complex: pairs of F32 or F64 */
  RONDE_C128 = 12
} ronde_dtype;

typedef enum {
  RONDE_ALLREDUCE = 0,
  RONDE_BROADCAST = 1,
  RONDE_ALLGATHER = 2,
  RONDE_BARRIER = 3,
  RONDE_REDUCESCATTER = 4, /* rank i gets the i-th part of the rows; the first ranks get those that are left over */
  RONDE_ALLTOALL = 5
} ronde_op;

typedef enum { RONDE_AVERAGE = 0, RONDE_SUM = 1, RONDE_MIN = 3, RONDE_MAX = 4, RONDE_PRODUCT = 5 } ronde_reduce_op;

/* The version of the library, "0.1.0". */
RONDE_API const char* ronde_version(void);
/* The text of the last error of the calling thread; valid until its next call. */
RONDE_API const char* ronde_last_error(void);

/* Starts an engine from the environment (docs/settings.md): RONDE_RANK, RONDE_SIZE, ... Without them: rank 0 of 1.
 * Waits until all ranks of the job have arrived, at most RONDE_INIT_TIMEOUT seconds. An engine is freed by nobody:
 * after ronde_shutdown the pointer stays valid and every call on it says NOT_INITIALIZED. */
RONDE_API int ronde_init(ronde_engine** out);
/* Leaves the job. What is in flight fails. Idempotent. Another engine may be started afterwards. */
RONDE_API int ronde_shutdown(ronde_engine* engine);
RONDE_API int ronde_is_running(ronde_engine* engine); /* 1 or 0 */

typedef struct {
  size_t struct_size;
  int32_t rank, size;
  int32_t local_rank, local_size; /* among the ranks of this host */
  int32_t cross_rank, cross_size; /* among the hosts that have a rank with this local rank */
  int32_t is_homogeneous;         /* 1: the same number of ranks on each host */
  uint32_t epoch;
} ronde_topology;
RONDE_API int ronde_get_topology(ronde_engine* engine, ronde_topology* out);

/* One tensor of a submission. Memory is dense, row-major, valid and untouched until the handle is complete. */
typedef struct {
  size_t struct_size;
  const char* name; /* NULL or "": unnamed, matched with the other ranks by order */
  int32_t op;       /* ronde_op */
  int32_t dtype;    /* ronde_dtype */
  int32_t ndim;     /* 0 ... 16 */
  const int64_t* dims;
  const void* input;
  void* output;      /* allreduce, broadcast: may equal input. NULL: the others, whose output is taken later */
  int32_t reduce_op; /* ronde_reduce_op; allreduce and reducescatter */
  int32_t root;      /* broadcast only: global rank, of the set */
  double prescale;   /* allreduce and reducescatter */
  double postscale;
  const int64_t* splits; /* alltoall: rows for each rank; rows after them are for nobody */
  int32_t split_count;   /* the number of ranks; 0: equal parts */
  uint32_t set;          /* the process set; 0: all ranks */
} ronde_tensor;

/* Flags of ronde_submit. */
/* Further submits of this step follow; nothing is sent before ronde_flush, a wait, or a submit without it. */
#define RONDE_MORE 1u

/* Submits `count` tensors as one unit (a group, if more than one) and gives one handle each. Never blocks. An error is
 * this rank's own (bad argument, name in flight) and leaves nothing submitted. */
RONDE_API int ronde_submit(ronde_engine* engine, const ronde_tensor* tensors, size_t count, uint32_t flags,
                           int64_t* handles);
RONDE_API int ronde_flush(ronde_engine* engine);

/* Adds a process set: some of the ranks, ascending, that then have operations of their own. All ranks of the job call
 * it with the same ranks, and wait for the handle; its output, to be taken, is the id as one I64. A set may overlap
 * others; ids are not used again. */
RONDE_API int ronde_add_set(ronde_engine* engine, const int32_t* ranks, size_t count, int64_t* handle);
/* Removes it: all ranks of the job call it, and wait for the handle. What is in flight in the set fails. */
RONDE_API int ronde_remove_set(ronde_engine* engine, uint32_t set, int64_t* handle);

/* 1: complete (with or without an error), 0: not yet, -1: no such handle. Flushes. */
RONDE_API int ronde_poll(ronde_engine* engine, int64_t handle);
/* Waits until the handle is complete or `seconds` have passed (< 0: no limit of its own). RONDE_INTERRUPTED: the time
 * passed; the handle lives on and may be waited for again. Any other value: the handle's own status, and the handle is
 * freed, except where it succeeded and the engine has allocated its output: that must be taken. */
RONDE_API int ronde_wait(ronde_engine* engine, int64_t handle, double seconds);

/* The output of an allgather, a reducescatter an alltoall or an added set whose wait said RONDE_OK. The caller owns
 * `data` and frees it with ronde_free. Frees the handle. */
typedef struct {
  size_t struct_size;
  void* data;
  int64_t bytes;
  int32_t ndim;
  int64_t dims[16];
  int32_t member_count;      /* rows came from this many ranks; 0 for a reducescatter */
  const int64_t* first_dims; /* rows of each, in rank order; inside `data`'s allocation, freed with it */
} ronde_output;
RONDE_API int ronde_take_output(ronde_engine* engine, int64_t handle, ronde_output* out);
RONDE_API void ronde_free(void* data);

/* Tells the launcher why this process is about to end (an exception's text), so that the others hear the cause. `code`:
 * the ronde_code of the exception, if it is an error of this library; 0 otherwise. */
RONDE_API int ronde_tell_failure(ronde_engine* engine, int32_t code, const char* text);

/* Counters since init, for tests, reports and benchmarks. */
typedef struct {
  size_t struct_size;
  uint64_t batches;            /* run by this rank */
  uint64_t tensors;            /* completed */
  uint64_t control_bytes_sent; /* reports, without headers */
  uint64_t control_bytes_received;
  uint64_t full_requests;   /* reports that carried a whole signature */
  uint64_t wakeups;         /* of the sleeping engine */
  uint64_t data_bytes_sent; /* over TCP links */
} ronde_counters;
RONDE_API int ronde_get_counters(ronde_engine* engine, ronde_counters* out);

/* "shm" or "tcp": how the ranks of this host exchange data in this epoch, and why if it is not shm ("" otherwise). */
RONDE_API const char* ronde_transport(ronde_engine* engine, const char** reason);

#ifdef __cplusplus
}
#endif
#endif
