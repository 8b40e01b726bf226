/* module_failing_malloc.c - preloaded into a program (LD_PRELOAD), it makes one allocation of our own code fail.
 *
 * The environment variable MALLOC_FAILS_AT is the number of that allocation.  If MALLOC_FAILS_ON is set, all later ones
 * fail as well.  At the end of the process, the number of allocations that our own code made is written to the file
 * that MALLOC_COUNT names.  Allocations of LLVM and other libraries never fail, since these would end the process. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static atomic_long count;
static long fails_at;
static bool fails_on;

__attribute__((constructor)) static void start(void) {
  const char *at = getenv("MALLOC_FAILS_AT");
  fails_at = at ? atol(at) : 0;
  fails_on = getenv("MALLOC_FAILS_ON") != NULL;
}

__attribute__((destructor)) static void finish(void) {
  const char *path = getenv("MALLOC_COUNT");
  FILE *f = path ? fopen(path, "w") : NULL;
  if (f) {
    fprintf(f, "%ld\n", atomic_load(&count));
    fclose(f);
  }
}

/* --- LLVM's functions in our library --- */

/* The addresses of a function of LLVM, as the library's file has them. */
typedef struct range {
  uint64_t begin, end;
} range;

static range *functions;
static size_t n_functions;
static const char *library; /* the path of the file of the library that compiles, from which functions[] is read once */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns true if the name begins as names of LLVM's functions do.  No name of our functions, which are C, begins
 * so. */
static bool is_of_llvm(const char *name) {
  return strncmp(name, "_Z", 2) == 0 || strncmp(name, "LLVM", 4) == 0 || strncmp(name, "llvm_", 5) == 0;
}

static int by_address(const void *x, const void *y) {
  uint64_t a = ((const range *)x)->begin, b = ((const range *)y)->begin;
  return a < b ? -1 : a > b;
}

static void read_table(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table) {
  const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table->sh_offset);
  const char *names = file + sections[table->sh_link].sh_offset;
  size_t n = table->sh_size / sizeof *symbols;
  functions = __libc_malloc(n * sizeof *functions);
  for (size_t k = 0; functions && k < n; k++) {
    const Elf64_Sym *s = &symbols[k];
    if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_size && is_of_llvm(names + s->st_name)) {
      functions[n_functions++] = (range){s->st_value, s->st_value + s->st_size};
    }
  }
  qsort(functions, n_functions, sizeof *functions, by_address);
}

static void read_functions(void) {
  struct stat st;
  int fd = open(library, O_RDONLY);
  const char *file =
      fd >= 0 && fstat(fd, &st) == 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (file == MAP_FAILED) {
    return;
  }
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)file;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + h->e_shoff);
  for (int k = 0; k < h->e_shnum; k++) {
    if (sections[k].sh_type == SHT_SYMTAB) {
      read_table(file, sections, &sections[k]);
    }
  }
  munmap((void *)file, (size_t)st.st_size);
  close(fd);
}

/* Returns true if the address is in LLVM's part of the library that compiles, which has a copy of LLVM. */
static bool is_in_llvm(const Dl_info *info, const void *address) {
  if (!strstr(info->dli_fname, "onnx-xla-compiler")) {
    return false;
  }
  library = info->dli_fname;
  pthread_once(&once, read_functions);
  uint64_t at = (uint64_t)((const char *)address - (const char *)info->dli_fbase);
  size_t low = 0, high = n_functions;
  while (low < high) { /* the last function that begins at or before the address */
    size_t middle = (low + high) / 2;
    low = functions[middle].begin <= at ? middle + 1 : low;
    high = functions[middle].begin <= at ? high : middle;
  }
  return low && at < functions[low - 1].end;
}

/* --- allocations --- */

/* Returns true if this allocation, which code at `caller` asks for, shall fail. */
static bool fails(const void *caller) {
  static _Thread_local bool inside; /* dladdr may allocate */
  Dl_info info;
  if (inside) {
    return false;
  }
  inside = true;
  bool ours =
      dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "onnx-xla") && !is_in_llvm(&info, caller);
  inside = false;
  if (!ours) {
    return false;
  }
  long k = atomic_fetch_add(&count, 1) + 1;
  bool fail = fails_at && (k == fails_at || (fails_on && k > fails_at));
  errno = fail ? ENOMEM : errno;
  return fail;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t size) { return fails(CALLER) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails(CALLER) ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return fails(CALLER) ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t align, size_t size) { return fails(CALLER) ? NULL : __libc_memalign(align, size); }
