/* fake_cuda_compile.h - the fake driver's compiler, linker and loader.  Only module_fake_cuda.c includes it.
 *
 * An object of this machine's code stands for PTX.  Compiling it makes a "cubin": the same object, which says that it
 * is for CUDA, and in its flags for which compute capability.  Real PTX is refused, or interpreted (tests/ptx) if
 * FAKE_CUDA_PTX is set; its "cubin" is such a header and the text. */
#ifndef TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_COMPILE_H
#define TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_COMPILE_H

/* Returns the size of an ELF object according to its headers: up to the end of its last section or of its
 * section table. */
static size_t elf_bytes(const void *image) {
  const Elf64_Ehdr *h = image;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)((const char *)image + h->e_shoff);
  size_t end = h->e_shoff + (size_t)h->e_shnum * sizeof *sections;
  for (int k = 0; k < h->e_shnum; k++) {
    size_t section = sections[k].sh_type == SHT_NOBITS ? 0 : sections[k].sh_offset + sections[k].sh_size;
    end = section > end ? section : end;
  }
  return end;
}

/* Returns the function of this name that code for a CPU may call, or NULL.  Code for a processor without an
 * FMA instruction calls fma. */
static void *resolve(const char *name) {
  return strcmp(name, "fma") == 0      ? (void *)(double (*)(double, double, double))fma
         : strcmp(name, "fmaf") == 0   ? (void *)(float (*)(float, float, float))fmaf
         : strcmp(name, "memcpy") == 0 ? (void *)memcpy
         : strcmp(name, "memset") == 0 ? (void *)memset
                                       : NULL;
}

static void write_log(unsigned n_options, const CUjit_option *options, void **values, const char *text) {
  char *log = NULL;
  size_t bytes = 0;
  for (unsigned k = 0; k < n_options; k++) {
    log = options[k] == CU_JIT_ERROR_LOG_BUFFER ? values[k] : log;
    bytes = options[k] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ? (size_t)(uintptr_t)values[k] : bytes;
  }
  if (log && bytes) {
    snprintf(log, bytes, "%s", text);
  }
}

static Elf64_Word capability_of_context(void) { return current->device == 0 ? 90 : 86; }

static bool interprets_ptx(void) { return getenv("FAKE_CUDA_PTX") != NULL; }

/* Reads PTX, on the arena.  What is wrong with it is written to the log. */
static CUresult read_ptx(arena *a, const char *text, unsigned n_options, const CUjit_option *options, void **values,
                         ptx_module **out) {
  status failed = ptx_parse(a, text, out);
  if (!failed) {
    return CUDA_SUCCESS;
  }
  write_log(n_options, options, values, status_message(failed));
  status_free(failed);
  return CUDA_ERROR_INVALID_PTX;
}

/* Returns CUDA_SUCCESS for an object, and for PTX if it is interpreted.  Otherwise writes to the log why there is no
 * code, and returns the error. */
static CUresult check_ptx(const void *ptx, unsigned n_options, const CUjit_option *options, void **values) {
  char text[200], target[20] = "no target";
  if (memcmp(ptx, ELFMAG, SELFMAG) == 0 || interprets_ptx()) {
    return CUDA_SUCCESS;
  }
  const char *line = strstr(ptx, ".target ");
  sscanf(line ? line : "", ".target %19[a-z0-9_]", target);
  snprintf(text, sizeof text, "ptxas application ptx input, line 1; fatal:\nthe fake driver has no compiler of PTX: %s",
           target);
  write_log(n_options, options, values, text);
  return CUDA_ERROR_INVALID_PTX;
}

/* Makes a copy of an object loadable: a cubin becomes an object of this machine again, and any other object
 * counts as a compilation.  Fails for a cubin of another compute capability. */
static CUresult make_loadable(Elf64_Ehdr *copy) {
  if (copy->e_machine != EM_CUDA) {
    compilations++;
    return CUDA_SUCCESS;
  }
  if (copy->e_flags != capability_of_context()) {
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  copy->e_machine = RT_ELF_MACHINE;
  copy->e_flags = 0;
  return CUDA_SUCCESS;
}

/* Returns the PTX from which a "cubin" was made: the cubin is a header and the text.  Returns NULL for other
 * objects. */
static const char *ptx_of_cubin(const Elf64_Ehdr *image) {
  return image->e_machine == EM_CUDA && image->e_shnum == 0 ? (const char *)(image + 1) : NULL;
}

static CUresult load_ptx(CUmodule m, const void *image, unsigned n, CUjit_option *options, void **values) {
  const Elf64_Ehdr *h = image;
  const char *text = image;
  if (memcmp(image, ELFMAG, SELFMAG) != 0) {
    compilations++;
  } else {
    text = ptx_of_cubin(h);
    if (h->e_flags != capability_of_context()) {
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
  }
  return read_ptx(m->arena, text, n, options, values, &m->ptx);
}

/* Loads an object of this machine's code. */
static CUresult load_object(CUmodule m, const void *image, unsigned n, CUjit_option *options, void **values) {
  size_t bytes = elf_bytes(image);
  Elf64_Ehdr *copy = arena_memdup(m->arena, image, bytes > sizeof *copy ? bytes : sizeof *copy);
  CUresult r = make_loadable(copy);
  status failed = r ? status_error(STATUS_INTERNAL, "a cubin for another GPU")
                    : rt_code_load(m->arena, (rt_span){(const uint8_t *)copy, bytes}, resolve, &m->code);
  if (failed) {
    write_log(n, options, values, status_message(failed));
    status_free(failed);
    return r ? r : CUDA_ERROR_INVALID_IMAGE;
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, CUjit_option *options, void **values) {
  BEGIN(true);
  NOT_IN_CAPTURE();
  CUresult r = check_ptx(image, n, options, values);
  if (r != CUDA_SUCCESS) {
    return r;
  }
  bool is_ptx = memcmp(image, ELFMAG, SELFMAG) != 0 || ptx_of_cubin(image);
  CUmodule m = *out = new_object(MODULE, sizeof *m);
  m->arena = arena_create(NULL);
  r = is_ptx ? load_ptx(m, image, n, options, values) : load_object(m, image, n, options, values);
  if (r != CUDA_SUCCESS) {
    arena_destroy(m->arena);
    free(m);
    return r;
  }
  begin_object(&m->object);
  return CUDA_SUCCESS;
}

/* --- the linker --- */

struct CUlinkState_st {
  object object;
  unsigned n_options;
  CUjit_option options[8];
  void *values[8];
  Elf64_Ehdr *cubin; /* NULL as long as nothing was added */
  size_t bytes;
  bool complete;
};

CUresult cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *out) {
  BEGIN(true);
  NOT_IN_CAPTURE();
  if (n > 8) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUlinkState l = *out = new_object(LINKER, sizeof *l);
  l->n_options = n;
  for (unsigned k = 0; k < n; k++) {
    l->options[k] = options[k];
    l->values[k] = values[k];
  }
  begin_object(&l->object);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState l, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned n,
                          CUjit_option *options, void **values) {
  (void)name;
  (void)options;
  (void)values;
  BEGIN(true);
  CHECK_HANDLE(l, LINKER);
  bool is_object = bytes >= sizeof *l->cubin && memcmp(data, ELFMAG, SELFMAG) == 0;
  bool is_text = bytes > 0 && ((const char *)data)[bytes - 1] == '\0';
  if (type != CU_JIT_INPUT_PTX || n || l->cubin || l->complete || (!is_object && !is_text)) {
    breach(__func__, "no PTX that ends with a NUL, or not the only one");
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult r = check_ptx(data, l->n_options, l->options, l->values);
  if (r != CUDA_SUCCESS) {
    return r;
  }
  size_t header = is_object ? 0 : sizeof *l->cubin;
  l->bytes = header + bytes;
  l->cubin = calloc(1, l->bytes);
  memcpy(l->cubin, ELFMAG, SELFMAG);
  memcpy((char *)l->cubin + header, data, bytes);
  return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState l, void **cubin, size_t *bytes) {
  BEGIN(true);
  CHECK_HANDLE(l, LINKER);
  if (!l->cubin || l->complete) {
    breach(__func__, "nothing to link");
    return CUDA_ERROR_INVALID_VALUE;
  }
  compilations++;
  l->complete = true;
  l->cubin->e_machine = EM_CUDA;
  l->cubin->e_flags = capability_of_context();
  *cubin = l->cubin;
  *bytes = l->bytes;
  return CUDA_SUCCESS;
}

/* Overwrites the cubin before it is freed, so that a use after that is noticed. */
CUresult cuLinkDestroy(CUlinkState l) {
  BEGIN(true);
  CHECK_HANDLE(l, LINKER);
  if (l->cubin) {
    memset(l->cubin, 0xee, l->bytes);
  }
  free(l->cubin);
  end_object(&l->object);
  return CUDA_SUCCESS;
}

#endif
