# ox_compiler.m4: flags of the C compiler and the linker.

# OX_CFLAG_IF_ACCEPTED(FLAG): adds FLAG to OX_CFLAGS if the compiler knows it. The probe uses -Werror, since compilers
# only warn about unknown -W flags.
AC_DEFUN([OX_CFLAG_IF_ACCEPTED], [
  AC_MSG_CHECKING([whether $CC accepts $1])
  ox_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([int ox_probe;])],
    [AC_MSG_RESULT([yes]); OX_CFLAGS="$OX_CFLAGS $1"], [AC_MSG_RESULT([no])])
  CFLAGS=$ox_save_CFLAGS
])

# OX_PACKED_RELOCATIONS: adds -z pack-relative-relocs to OX_LDFLAGS if the loader of this machine understands it (glibc
# 2.36). LLVM's tables have 240,000 relocations, which then take 70 KB of memory in place of 5.6 MB.
AC_DEFUN([OX_PACKED_RELOCATIONS], [
  AC_MSG_CHECKING([whether programs run that are linked with -z pack-relative-relocs])
  ox_save_LDFLAGS=$LDFLAGS
  LDFLAGS="$LDFLAGS -Wl,-z,pack-relative-relocs"
  AC_RUN_IFELSE([AC_LANG_PROGRAM([static int x, *volatile at = &x;], [return at != &x;])],
    [AC_MSG_RESULT([yes]); OX_LDFLAGS="$OX_LDFLAGS -Wl,-z,pack-relative-relocs"], [AC_MSG_RESULT([no])],
    [AC_MSG_RESULT([not known, as this is a cross-compilation])])
  LDFLAGS=$ox_save_LDFLAGS
])

# OX_COMPILER_FLAGS: sets OX_CFLAGS (warnings; --enable-werror) and OX_LDFLAGS.
AC_DEFUN([OX_COMPILER_FLAGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors (CI)])],
    [ox_werror=$enableval], [ox_werror=no])
  OX_CFLAGS=
  # a*b+c must give the same bits on every target, so the compiler may not fuse it: a fused operation is always written
  # as fma().
  m4_foreach_w([flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
                        -ffp-contract=off], [OX_CFLAG_IF_ACCEPTED(flag)])
  AS_IF([test "$ox_werror" = yes], [OX_CFLAGS="$OX_CFLAGS -Werror"])
  OX_LDFLAGS=
  OX_PACKED_RELOCATIONS
  AC_SUBST([OX_CFLAGS])
  AC_SUBST([OX_LDFLAGS])
])

# OX_SANITIZE: --enable-sanitize=address,undefined or =thread. Without sanitizers (whose run-time library a shared
# library leaves open) an undefined symbol in a shared library is an error at link time, not when it is loaded.
AC_DEFUN([OX_SANITIZE], [
  AC_ARG_ENABLE([sanitize],
    [AS_HELP_STRING([--enable-sanitize=LIST], [address,undefined (the default for "yes") or thread])],
    [ox_sanitize=$enableval], [ox_sanitize=])
  AS_CASE([$ox_sanitize],
    [no], [ox_sanitize=],
    [yes], [ox_sanitize=address,undefined],
    [*address*thread*|*thread*address*],
      [AC_MSG_ERROR([--enable-sanitize: address and thread cannot be combined])])
  AS_IF([test -z "$ox_sanitize"], [
    AC_MSG_CHECKING([whether the linker takes -z defs])
    ox_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,-z,defs"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes]); OX_SHLIB_LDFLAGS="-Wl,-z,defs"], [AC_MSG_RESULT([no])])
    LDFLAGS=$ox_save_LDFLAGS
  ], [
    AC_MSG_CHECKING([whether $CC accepts -fsanitize=$ox_sanitize])
    ox_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=$ox_sanitize"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
      AC_MSG_ERROR([$CC cannot build with -fsanitize=$ox_sanitize: install its run-time libraries (GCC: libasan, libubsan, libtsan)])])
    CFLAGS=$ox_save_CFLAGS
    OX_CFLAGS="$OX_CFLAGS -fsanitize=$ox_sanitize -fno-omit-frame-pointer"
    # Undefined behaviour ends the program, or the tests would pass over it.
    AS_CASE([$ox_sanitize], [*undefined*], [OX_CFLAGS="$OX_CFLAGS -fno-sanitize-recover=undefined"])
    OX_LDFLAGS="$OX_LDFLAGS -fsanitize=$ox_sanitize"
  ])
  AC_SUBST([OX_SHLIB_LDFLAGS])
  AC_SUBST([OX_SANITIZERS], [$ox_sanitize])
])

# OX_VERSION_SCRIPT: if the linker takes version scripts, they list the symbols that libraries export.
AC_DEFUN([OX_VERSION_SCRIPT], [
  AC_MSG_CHECKING([whether the linker takes --version-script])
  AS_ECHO(["{ global: ox_probe; local: *; };"]) >conftest.map
  ox_save_LDFLAGS=$LDFLAGS; ox_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -fPIC"
  LDFLAGS="$LDFLAGS -shared -Wl,--version-script=conftest.map"
  AC_LINK_IFELSE([AC_LANG_SOURCE([int ox_probe(void); int ox_probe(void) { return 0; }])],
    [ox_version_script=yes], [ox_version_script=no])
  CFLAGS=$ox_save_CFLAGS; LDFLAGS=$ox_save_LDFLAGS
  rm -f conftest.map
  AC_MSG_RESULT([$ox_version_script])
  AM_CONDITIONAL([VERSION_SCRIPT], [test "$ox_version_script" = yes])
])

# OX_LITTLE_ENDIAN: fails on big-endian machines. The preprocessor is asked, so that this works for cross-compiling too.
AC_DEFUN([OX_LITTLE_ENDIAN], [
  AC_MSG_CHECKING([whether the machine is little-endian])
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error big-endian
#endif
int ox_probe;]])], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
    AC_MSG_ERROR([onnx-xla needs a little-endian machine: models and .oxla files are mapped, not swapped])])
])
