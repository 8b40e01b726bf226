# ox_llvm.m4: LLVM 19 through its C API.

# OX_LLVM: sets LLVM_CPPFLAGS, LLVM_LDFLAGS, LLVM_LIBS, LLVM_COMPILER_LIBS, HOT_FUNCTIONS_LDFLAGS, LLVM_LIBDIR,
# LLVM_VERSION, and OBJCOPY if the archives are used.
# --with-llvm names a prefix or an llvm-config (which runs on the machine that builds, also when cross-compiling).
AC_DEFUN([OX_LLVM], [
  AC_ARG_WITH([llvm], [AS_HELP_STRING([--with-llvm=PREFIX-or-llvm-config], [where LLVM 19 is])],
    [], [with_llvm=yes])
  AS_CASE([$with_llvm],
    [no], [AC_MSG_ERROR([onnx-xla cannot be built without LLVM])],
    [yes], [AC_PATH_PROGS([LLVM_CONFIG], [llvm-config-19 llvm-config], [],
              [$PATH$PATH_SEPARATOR/usr/lib/llvm-19/bin$PATH_SEPARATOR/usr/lib64/llvm19/bin$PATH_SEPARATOR/usr/local/opt/llvm@19/bin])],
    [AS_IF([test -d "$with_llvm"], [LLVM_CONFIG=$with_llvm/bin/llvm-config], [LLVM_CONFIG=$with_llvm])])

  AC_MSG_CHECKING([for LLVM 19])
  LLVM_VERSION=
  AS_IF([test -n "$LLVM_CONFIG"], [LLVM_VERSION=`"$LLVM_CONFIG" --version 2>/dev/null`])
  AS_CASE([$LLVM_VERSION],
    [19.*], [
      AC_MSG_RESULT([$LLVM_VERSION ($LLVM_CONFIG)])
      OX_LLVM_FLAGS
      OX_LLVM_TRY
      OX_LLVM_STATIC],
    [AC_MSG_RESULT([no${LLVM_VERSION:+, only $LLVM_VERSION}])
     OX_MISSING([LLVM 19], [llvm-19-dev], [or give --with-llvm=PREFIX-or-llvm-config])])
  AC_SUBST([LLVM_CPPFLAGS])
  AC_SUBST([LLVM_LDFLAGS])
  AC_SUBST([LLVM_LIBS])
  AC_SUBST([LLVM_COMPILER_LIBS])
  AC_SUBST([HOT_FUNCTIONS_LDFLAGS])
  AC_SUBST([LLVM_LIBDIR])
  AC_SUBST([LLVM_VERSION])
])

# LLVM's shared library if there is one. A static LLVM is linked as C++ and needs the system libraries that llvm-config
# lists.
# -isystem turns off our warnings in LLVM's headers; it may not name a folder that the compiler searches anyway.
AC_DEFUN([OX_LLVM_FLAGS], [
  ox_dir=`"$LLVM_CONFIG" --includedir`
  AS_CASE([$ox_dir], [/usr/include], [LLVM_CPPFLAGS=], [LLVM_CPPFLAGS="-isystem $ox_dir"])
  LLVM_LIBDIR=`"$LLVM_CONFIG" --libdir`
  LLVM_LDFLAGS="-L$LLVM_LIBDIR"
  AS_CASE([$LLVM_LIBDIR], [/usr/*], [], [LLVM_LDFLAGS="$LLVM_LDFLAGS -Wl,-rpath,$LLVM_LIBDIR"])
  LLVM_LIBS=`"$LLVM_CONFIG" --link-shared --libs 2>/dev/null`
  AS_IF([test -z "$LLVM_LIBS"],
    [LLVM_LIBS="`"$LLVM_CONFIG" --link-static --libs --system-libs | tr '\n' ' '` -lstdc++"])
])

AC_DEFUN([OX_LLVM_TRY], [
  ox_targets=" `"$LLVM_CONFIG" --targets-built` "
  for ox_target in X86 AArch64 ARM RISCV WebAssembly NVPTX; do
    AS_CASE([$ox_targets], [*" $ox_target "*], [],
      [OX_MISSING([LLVM 19 with the target $ox_target], [llvm-19-dev], [or give --with-llvm=PREFIX-or-llvm-config])])
  done
  OX_WITH_FLAGS([LLVM], [
    LIBS="$LLVM_LIBS $LIBS"
    AC_MSG_CHECKING([whether a program links with LLVM])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <llvm-c/Core.h>]], [[LLVMContextRef c = LLVMContextCreate(); LLVMContextDispose(c);]])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       OX_MISSING([headers or library of LLVM 19], [llvm-19-dev], [or give --with-llvm=PREFIX-or-llvm-config])])
  ])
])

# OX_HOT_FUNCTIONS: sets HOT_FUNCTIONS_LDFLAGS if the linker takes a script that only adds to its own one.
AC_DEFUN([OX_HOT_FUNCTIONS], [
  AC_MSG_CHECKING([whether the linker takes the order of LLVM's functions])
  ox_save_LDFLAGS=$LDFLAGS
  LDFLAGS="$LDFLAGS -Wl,-T,$srcdir/m4/hot_functions.ld"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); HOT_FUNCTIONS_LDFLAGS='-Wl,-T,$(srcdir)/m4/hot_functions.ld'],
    [AC_MSG_RESULT([no])])
  LDFLAGS=$ox_save_LDFLAGS
])

# OX_LLVM_STATIC: sets LLVM_COMPILER_LIBS, for linking libonnx-xla-compiler: LLVM's archives, since loading all of LLVM
# as a shared library takes longer than compiling a small model. The many programs of tests are linked with LLVM_LIBS
# instead. Sets HOT_FUNCTIONS_LDFLAGS, which puts the functions of the archives that compilations execute next to each
# other (m4/list-hot-functions): 15 MB less memory in a process that compiles.
AC_DEFUN([OX_LLVM_STATIC], [
  AC_ARG_ENABLE([static-llvm],
    [AS_HELP_STRING([--disable-static-llvm], [uses LLVM's shared library, which makes a small library that takes longer to load])],
    [], [enable_static_llvm=auto])
  LLVM_COMPILER_LIBS=$LLVM_LIBS ox_llvm_form='shared library'
  AS_IF([test "$enable_static_llvm" != no], [
    AC_MSG_CHECKING([for the archives of LLVM])
    ox_libs=`"$LLVM_CONFIG" --link-static --libs core target passes x86 aarch64 arm riscv webassembly nvptx 2>/dev/null`
    # What we do not call does not need Z3 and libxml2.
    for ox_lib in `"$LLVM_CONFIG" --link-static --system-libs 2>/dev/null`; do
      AS_CASE([$ox_lib], [*z3*|*xml2*|*edit*|*tinfo*], [], [ox_libs="$ox_libs $ox_lib"])
    done
    ox_libs="-Wl,--gc-sections -Wl,--exclude-libs,ALL $ox_libs -lstdc++"
    OX_WITH_FLAGS([LLVM], [
      LIBS="$ox_libs $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>]], [[LLVMInitializeX86Target(); LLVMDisposePassBuilderOptions(LLVMCreatePassBuilderOptions());]])],
        [AC_MSG_RESULT([yes])
         LLVM_COMPILER_LIBS=$ox_libs ox_llvm_form=archives
         OX_HOT_FUNCTIONS
         AC_CHECK_TOOL([OBJCOPY], [objcopy])],
        [AC_MSG_RESULT([no: the shared library is used])
         AS_IF([test "$enable_static_llvm" = yes],
           [OX_MISSING([archives of LLVM 19 or what they need], [llvm-19-dev libzstd-dev zlib1g-dev], [or leave --enable-static-llvm out])])])
    ])
  ])
])
