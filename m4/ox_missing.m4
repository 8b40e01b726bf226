# ox_missing.m4: collects what configure did not find, so that a person installs it all at once.

# OX_MISSING(WHAT, DEBIAN-PACKAGES, [WHAT-ELSE-CAN-BE-DONE])
AC_DEFUN([OX_MISSING], [
  AS_VAR_APPEND([ox_missing_text], ["
  * $1: Debian package $2[]m4_ifval([$3], [ ($3)])"])
  AS_VAR_APPEND([ox_missing_packages], [" $2"])
])

# OX_REPORT_MISSING: ends configure with a list of all that OX_MISSING collected, if there is any.
AC_DEFUN([OX_REPORT_MISSING], [
  AS_IF([test -n "$ox_missing_text"], [
    AC_MSG_ERROR([some of what onnx-xla is built from is missing:
$ox_missing_text

On Debian and Ubuntu:  apt-get install$ox_missing_packages
])])
])

# OX_PREFIX_FLAGS(NAME, PREFIX): sets NAME_CPPFLAGS and NAME_LDFLAGS for a library below PREFIX. Such a prefix is seldom
# on the loader's path, so what we link gets a run path to it.
AC_DEFUN([OX_PREFIX_FLAGS], [
  AS_CASE(["$2"], [''|yes|no|/usr], [], [
    # Or the search would go on to the system's, and nobody would know.
    AS_IF([test ! -d "$2/include"], [AC_MSG_ERROR([$2/include is not there: the prefix given for $1 is wrong])])
    $1_CPPFLAGS="-I$2/include"
    ox_libdir="$2/lib"
    AS_IF([test ! -d "$2/lib" && test -d "$2/lib64"], [ox_libdir="$2/lib64"])
    $1_LDFLAGS="-L$ox_libdir -Wl,-rpath,$ox_libdir"
  ])
])

# OX_WITH_FLAGS(NAME, COMMANDS): runs COMMANDS with NAME_CPPFLAGS and NAME_LDFLAGS in effect, then restores the flags.
AC_DEFUN([OX_WITH_FLAGS], [
  ox_save_CPPFLAGS=$CPPFLAGS; ox_save_LDFLAGS=$LDFLAGS; ox_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $$1_CPPFLAGS"; LDFLAGS="$LDFLAGS $$1_LDFLAGS"
  $2
  CPPFLAGS=$ox_save_CPPFLAGS; LDFLAGS=$ox_save_LDFLAGS; LIBS=$ox_save_LIBS
])
