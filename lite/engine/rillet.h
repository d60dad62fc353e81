/* rillet.h - run .rlt models. C99, no dependencies. One model may be shared by many contexts; a context is used by one
 * thread at a time. Functions that can fail return a rillet_status; rillet_error() then says what, in words. */
#ifndef RILLET_H
#define RILLET_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(RILLET_BUILDING_LIBRARY)
#define RILLET_API __attribute__((visibility("default")))
#else
#define RILLET_API
#endif

typedef struct rillet_model rillet_model;
typedef struct rillet_context rillet_context;

/* A closed list: every way in which a call can fail. */
typedef enum rillet_status {
  RILLET_OK = 0,
  RILLET_FILE_NOT_FOUND = 1, /* no such file, or it cannot be read */
  RILLET_BAD_MAGIC = 2,      /* not a .rlt file */
  RILLET_BAD_VERSION = 3,    /* a format version that this library does not know */
  RILLET_TRUNCATED = 4,      /* the file is shorter or longer than its header says */
  RILLET_BAD_CHECKSUM = 5,   /* header, structure or a section does not match its CRC-32 */
  RILLET_MALFORMED = 6,      /* the FlatBuffer is not valid */
  RILLET_BAD_REFERENCE = 7,  /* an index of a tensor, section or program is out of range */
  RILLET_BAD_TENSOR = 8,     /* impossible type, shape, quantization or section size */
  RILLET_BAD_ORDER = 9,      /* a tensor is read before it is written, or written twice */
  RILLET_UNKNOWN_OP = 10,    /* no kernel for (op, version, dtype) in this library */
  RILLET_BAD_OPERATION = 11, /* a kernel refuses its attributes or inputs */
  RILLET_BAD_ARGUMENT = 12,  /* the caller's mistake: index, name, shape, size, null */
  RILLET_OUT_OF_MEMORY = 13,
  RILLET_BAD_DATA = 14 /* data-dependent failure in a run: an index outside its table, a bad label */
} rillet_status;

typedef enum rillet_dtype {
  RILLET_F32 = 0,
  RILLET_F64 = 1,
  RILLET_I8 = 2,
  RILLET_U8 = 3,
  RILLET_I32 = 4,
  RILLET_I64 = 5,
  RILLET_BOOL = 6
} rillet_dtype;

#define RILLET_MAX_RANK 8

typedef struct rillet_tensor_info {
  const char* name;
  rillet_dtype dtype;
  int32_t rank;
  int64_t dims[RILLET_MAX_RANK]; /* -1: not known until rillet_resize */
  int32_t quantized;             /* 1 if scale and zero_point mean something: real = scale * (q - zero_point) */
  float scale;                   /* the first one if there is one per channel */
  int32_t zero_point;
  size_t bytes; /* 0 while a dimension is not known */
} rillet_tensor_info;

typedef struct rillet_profile_entry {
  const char* op;
  const char* name;     /* of the operation, as the user called it */
  const char* kernel;   /* dtype of the kernel that runs it */
  uint64_t nanoseconds; /* total over `runs` */
  uint64_t runs;
} rillet_profile_entry;

RILLET_API const char* rillet_version(void);
/* Text of the last failure on this thread; never null. */
RILLET_API const char* rillet_error(void);
RILLET_API const char* rillet_status_name(rillet_status status);

/* The file is mapped, not read; it must not change while the model lives. */
RILLET_API rillet_status rillet_model_load_file(const char* path, rillet_model** model);
/* The bytes are borrowed: they must outlive the model. Any alignment; bytes not aligned to 16 are copied. */
RILLET_API rillet_status rillet_model_load_memory(const void* bytes, size_t size, rillet_model** model);
RILLET_API void rillet_model_free(rillet_model* model);
RILLET_API int32_t rillet_model_metadata_count(const rillet_model* model);
RILLET_API rillet_status rillet_model_metadata(const rillet_model* model, int32_t i, const char** key,
                                               const char** value);

/* threads: 1 runs inline in the caller's thread. The model must outlive the context. */
RILLET_API rillet_status rillet_context_new(const rillet_model* model, int32_t threads, rillet_context** context);
RILLET_API void rillet_context_free(rillet_context* context);

RILLET_API int32_t rillet_input_count(const rillet_context* context);
RILLET_API int32_t rillet_output_count(const rillet_context* context);
RILLET_API rillet_status rillet_input_info(const rillet_context* context, int32_t i, rillet_tensor_info* info);
RILLET_API rillet_status rillet_output_info(const rillet_context* context, int32_t i, rillet_tensor_info* info);

/* Sets the shape of input i. Takes effect (kernels prepared, memory planned) at the next rillet_prepare or rillet_run.
 */
RILLET_API rillet_status rillet_resize(rillet_context* context, int32_t i, const int64_t* dims, int32_t rank);
/* Prepares now: output shapes are known afterwards. rillet_run does it by itself where needed. */
RILLET_API rillet_status rillet_prepare(rillet_context* context);
/* Where to write input i before, and to read output i after a run. Valid until the next resize, bind or prepare. */
RILLET_API void* rillet_input_data(rillet_context* context, int32_t i);
RILLET_API const void* rillet_output_data(rillet_context* context, int32_t i);

/* Variables: tensors whose memory belongs to the caller and that training operations update in place. */
RILLET_API int32_t rillet_variable_count(const rillet_context* context);
RILLET_API rillet_status rillet_variable_info(const rillet_context* context, int32_t i, rillet_tensor_info* info);
/* data must stay valid while bound, and hold the variable's bytes. dims and rank fix its shape. */
RILLET_API rillet_status rillet_bind_variable(rillet_context* context, int32_t i, void* data, size_t bytes,
                                              const int64_t* dims, int32_t rank);

RILLET_API rillet_status rillet_run(rillet_context* context);

/* Any tensor of the entry program, for verify and calibration: keep before preparing, read after a run. */
RILLET_API int32_t rillet_tensor_count(const rillet_context* context);
RILLET_API rillet_status rillet_keep_all(rillet_context* context, int32_t keep);
RILLET_API rillet_status rillet_tensor(const rillet_context* context, int32_t i, rillet_tensor_info* info,
                                       const void** data);

/* Times per operation; off (and free) unless switched on. */
RILLET_API rillet_status rillet_profile(rillet_context* context, int32_t on);
RILLET_API int32_t rillet_profile_count(const rillet_context* context);
RILLET_API rillet_status rillet_profile_get(const rillet_context* context, int32_t i, rillet_profile_entry* entry);
/* Bytes of the arena, of packed weights and kernel state, and of the workspace. */
RILLET_API rillet_status rillet_memory(const rillet_context* context, size_t* arena, size_t* prepared,
                                       size_t* workspace);
/* The most bytes that preparing a context for one set of shapes may take; 0: the machine's memory, the default. */
RILLET_API void rillet_set_memory_limit(size_t bytes);

/* The kernels in this library, and the instruction sets they can use. */
RILLET_API int32_t rillet_kernel_count(void);
RILLET_API rillet_status rillet_kernel_info(int32_t i, const char** op, int32_t* version, const char** dtype,
                                            uint32_t* flags);
RILLET_API int32_t rillet_isa_available(const char* name);
RILLET_API const char* rillet_isa(void);
/* For tests: contexts prepared from now on use this instruction set ("scalar", "avx2", ...). */
RILLET_API rillet_status rillet_set_isa(const char* name);

#ifdef __cplusplus
}
#endif
#endif
