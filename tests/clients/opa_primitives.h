/* The atomic operations that Casper takes from OpenPA, a submodule that its repository names
 * without it. */
#pragma once

typedef struct {
  int value;
} OPA_int_t;

typedef struct {
  void* value;
} OPA_ptr_t;

static inline int OPA_load_int(const OPA_int_t* from) {
  return __atomic_load_n(&from->value, __ATOMIC_SEQ_CST);
}

static inline void OPA_store_int(OPA_int_t* to, int value) {
  __atomic_store_n(&to->value, value, __ATOMIC_SEQ_CST);
}

static inline void* OPA_load_ptr(const OPA_ptr_t* from) {
  return __atomic_load_n(&from->value, __ATOMIC_SEQ_CST);
}

static inline void OPA_store_ptr(OPA_ptr_t* to, void* value) {
  __atomic_store_n(&to->value, value, __ATOMIC_SEQ_CST);
}

static inline void* OPA_swap_ptr(OPA_ptr_t* at, void* value) {
  return __atomic_exchange_n(&at->value, value, __ATOMIC_SEQ_CST);
}

/* Returns the value before. */
static inline void* OPA_cas_ptr(OPA_ptr_t* at, void* expected, void* value) {
  __atomic_compare_exchange_n(&at->value, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

static inline void OPA_write_barrier(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline void OPA_read_barrier(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
