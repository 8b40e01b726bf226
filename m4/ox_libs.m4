# ox_libs.m4: the other libraries. Each macro sets NAME_CPPFLAGS, NAME_LDFLAGS, NAME_LIBS and ox_have_NAME.

# OX_COMPILER: --disable-compiler builds only onnx-xla-run, which needs none of the libraries below but xxHash's header.
# --disable-precompiled: the functions that models share are not compiled while building (backend_cpu/precompiled); they
# never are where the compiler does not run on the building machine.
AC_DEFUN([OX_COMPILER], [
  AC_ARG_ENABLE([compiler],
    [AS_HELP_STRING([--disable-compiler], [builds only onnx-xla-run, which runs compiled models: needs a C compiler and xxHash])],
    [ox_compiler=$enableval], [ox_compiler=yes])
  AS_IF([test "$ox_compiler" = no], [with_onednn=no with_openblas=no with_leptonica=no with_pcre2=no with_check=no])
  AM_CONDITIONAL([COMPILER], [test "$ox_compiler" = yes])
  AC_ARG_ENABLE([precompiled],
    [AS_HELP_STRING([--disable-precompiled], [compiles no functions while building, so that each model brings all that it needs])],
    [ox_precompiled=$enableval], [ox_precompiled=yes])
  AS_IF([test "$ox_compiler" = no || test "$cross_compiling" = yes], [ox_precompiled=no])
  AM_CONDITIONAL([PRECOMPILED], [test "$ox_precompiled" = yes])
])

# OX_PROTOBUF_C: the library and its compiler, which the build runs on frontend/onnx.proto.
AC_DEFUN([OX_PROTOBUF_C], [
  AC_ARG_WITH([protobuf-c], [AS_HELP_STRING([--with-protobuf-c=PREFIX], [where protobuf-c is])], [],
    [with_protobuf_c=yes])
  OX_PREFIX_FLAGS([PROTOBUF_C], [$with_protobuf_c])
  OX_WITH_FLAGS([PROTOBUF_C], [
    ox_have_protobuf_c=no
    AC_CHECK_HEADER([protobuf-c/protobuf-c.h], [
      AC_CHECK_LIB([protobuf-c], [protobuf_c_message_unpack], [ox_have_protobuf_c=yes])])
  ])
  AS_IF([test $ox_have_protobuf_c = no], [OX_MISSING([protobuf-c], [libprotobuf-c-dev],
    [or give --with-protobuf-c=PREFIX])])
  AC_PATH_PROGS([PROTOC_C], [protoc-c], [], [$with_protobuf_c/bin$PATH_SEPARATOR$PATH])
  AS_IF([test -z "$PROTOC_C"], [OX_MISSING([protoc-c, the compiler of protobuf-c], [protobuf-c-compiler],
    [or set PROTOC_C])])
  PROTOBUF_C_LIBS=-lprotobuf-c
  AC_SUBST([PROTOBUF_C_CPPFLAGS])
  AC_SUBST([PROTOBUF_C_LDFLAGS])
  AC_SUBST([PROTOBUF_C_LIBS])
])

# OX_XXHASH: xxHash's header, which has all of its code. Version 0.8.0 is the first with XXH3.
AC_DEFUN([OX_XXHASH], [
  AC_ARG_WITH([xxhash], [AS_HELP_STRING([--with-xxhash=PREFIX], [where xxHash is])], [], [with_xxhash=yes])
  OX_PREFIX_FLAGS([XXHASH], [$with_xxhash])
  OX_WITH_FLAGS([XXHASH], [
    AC_MSG_CHECKING([for xxHash 0.8.0 or newer])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#define XXH_INLINE_ALL
#include <xxhash.h>
#if XXH_VERSION_NUMBER < 800
#error too old
#endif]], [[return (int)XXH3_128bits("", 0).low64;]])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       OX_MISSING([xxHash 0.8.0 or newer], [libxxhash-dev], [or give --with-xxhash=PREFIX])])
  ])
  AC_SUBST([XXHASH_CPPFLAGS])
])

# OX_ONEDNN: oneDNN 2.x or 3.x. Their C APIs differ, so the version header is asked which one it is. It is not linked:
# it is opened when it is first called (backend_cpu/runtime/onednn_library.c).
AC_DEFUN([OX_ONEDNN], [
  AC_ARG_WITH([onednn], [AS_HELP_STRING([--with-onednn=PREFIX], [where oneDNN 2.x or 3.x is (--without-onednn: do without, slower)])],
    [], [with_onednn=yes])
  ox_have_onednn=no ONEDNN_VERSION_MAJOR=0
  AS_IF([test "$with_onednn" != no], [
    OX_PREFIX_FLAGS([ONEDNN], [$with_onednn])
    OX_WITH_FLAGS([ONEDNN], [
      AC_CHECK_HEADER([oneapi/dnnl/dnnl.h], [AC_CHECK_LIB([dnnl], [dnnl_engine_create], [ox_have_onednn=yes])])
      AS_IF([test $ox_have_onednn = yes], [
        AC_MSG_CHECKING([for the version of oneDNN])
        AC_COMPUTE_INT([ONEDNN_VERSION_MAJOR], [DNNL_VERSION_MAJOR], [[#include <oneapi/dnnl/dnnl_version.h>]],
          [ONEDNN_VERSION_MAJOR=0])
        AC_MSG_RESULT([$ONEDNN_VERSION_MAJOR])
        ox_have_onednn="$ONEDNN_VERSION_MAJOR.x"])
    ])
    AS_CASE([$ox_have_onednn],
      [no], [OX_MISSING([oneDNN], [libdnnl-dev], [or give --with-onednn=PREFIX, or --without-onednn])],
      [2.x|3.x], [ONEDNN_CPPFLAGS="$ONEDNN_CPPFLAGS -DHAVE_ONEDNN=1"],
      [AC_MSG_ERROR([oneDNN $ox_have_onednn is neither 2.x nor 3.x: use --with-onednn=PREFIX or --without-onednn])])
  ])
  AM_CONDITIONAL([HAVE_ONEDNN], [test "$ox_have_onednn" != no])
  AC_SUBST([ONEDNN_CPPFLAGS])
  AC_SUBST([ONEDNN_LDFLAGS])
])

# OX_OPENBLAS: OpenBLAS itself, not any CBLAS: we set its number of threads.
AC_DEFUN([OX_OPENBLAS], [
  AC_ARG_WITH([openblas], [AS_HELP_STRING([--with-openblas=PREFIX], [where OpenBLAS is (--without-openblas: do without, slower)])],
    [], [with_openblas=yes])
  ox_have_openblas=no
  AS_IF([test "$with_openblas" != no], [
    OX_PREFIX_FLAGS([OPENBLAS], [$with_openblas])
    OX_WITH_FLAGS([OPENBLAS], [
      AC_CHECK_HEADER([cblas.h], [AC_CHECK_LIB([openblas], [openblas_set_num_threads], [ox_have_openblas=yes])])
    ])
    AS_IF([test $ox_have_openblas = yes],
      [OPENBLAS_CPPFLAGS="$OPENBLAS_CPPFLAGS -DHAVE_OPENBLAS=1"; OPENBLAS_LIBS=-lopenblas],
      [OX_MISSING([OpenBLAS], [libopenblas-dev], [or give --with-openblas=PREFIX, or --without-openblas])])
  ])
  AM_CONDITIONAL([HAVE_OPENBLAS], [test "$ox_have_openblas" != no])
  AC_SUBST([OPENBLAS_CPPFLAGS])
  AC_SUBST([OPENBLAS_LDFLAGS])
  AC_SUBST([OPENBLAS_LIBS])
])

# OX_OPENED(NAME, OPTION, TITLE, HEADERS, LIBRARY, FUNCTION, PACKAGE, USE): a library that only some operators call. It
# is not linked: it is opened when such an operator runs (plugin/compiler/host/library.h), by the name that its file has
# for the loader, NAME_LIBRARY. Without it, these operators are refused.
AC_DEFUN([OX_OPENED], [
  AC_ARG_WITH([$2], [AS_HELP_STRING([--with-$2=PREFIX], [where $3 is (--without-$2: do without, $8)])], [], [with_$2=maybe])
  AS_CASE([$with_$2], [maybe], [ox_prefix=yes], [ox_prefix=$with_$2])
  ox_have_$2=no
  AS_IF([test "$with_$2" != no], [
    OX_PREFIX_FLAGS([$1], [$ox_prefix])
    OX_WITH_FLAGS([$1], [
      AC_MSG_CHECKING([for $3])
      LIBS="-l$5 $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[$4]], [[void (*volatile f)(void) = (void (*)(void))$6; return !f;]])], [
        ox_have_$2=`LC_ALL=C readelf -d conftest$EXEEXT | $SED -n 's/.*(NEEDED).*\@<:@\(lib$5@<:@^@:>@@:>@*\)\@:>@.*/\1/p'`
        ox_have_$2=${ox_have_$2:-no}])
      AC_MSG_RESULT([$ox_have_$2])
    ])
    AS_CASE([$ox_have_$2:$with_$2],
      [no:maybe], [ox_have_$2="no ($8; Debian package $7)"],
      [no:*], [OX_MISSING([$3], [$7], [or give --with-$2=PREFIX, or --without-$2])],
      [$1_CPPFLAGS="$$1_CPPFLAGS -D$1_LIBRARY='\"$ox_have_$2\"'"])
  ])
])

# OX_CHECK: the unit test framework. Some builds of it need subunit.
AC_DEFUN([OX_CHECK], [
  AC_ARG_WITH([check], [AS_HELP_STRING([--with-check=PREFIX], [where Check is (--without-check: no unit tests)])],
    [], [with_check=yes])
  ox_have_check=no
  AS_IF([test "$with_check" != no], [
    OX_PREFIX_FLAGS([CHECK], [$with_check])
    OX_WITH_FLAGS([CHECK], [
      AC_CHECK_HEADER([check.h], [
        AC_CHECK_LIB([subunit], [subunit_test_start], [ox_subunit=-lsubunit], [ox_subunit=])
        AC_CHECK_LIB([check], [srunner_create], [ox_have_check=yes; CHECK_LIBS="-lcheck $ox_subunit -lrt -lm"], [],
          [$ox_subunit -lrt -lm])])
    ])
    AS_IF([test $ox_have_check = no], [OX_MISSING([Check, the unit test framework], [check],
      [or give --without-check to do without unit tests])])
  ])
  AM_CONDITIONAL([HAVE_CHECK], [test $ox_have_check = yes])
  AC_SUBST([CHECK_CPPFLAGS])
  AC_SUBST([CHECK_LDFLAGS])
  AC_SUBST([CHECK_LIBS])
])
