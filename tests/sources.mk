# Written by m4/list-sources: do not edit.
check_programs = \
	tests/unit/check_dim \
	tests/unit/check_npy
test_programs =
test_modules =
test_helper_sources =
script_tests = \
	tests/test-includes \
	tests/test-libs \
	tests/test-sources
hlo_tests =
tests_files = \
	tests/allowed-skips \
	tests/count-results \
	tests/fetch-data \
	tests/lsan.supp \
	tests/test-includes \
	tests/test-libs \
	tests/test-sources \
	tests/tsan.supp
tests_unit_check_dim_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_check_dim_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
tests_unit_check_npy_CPPFLAGS = $(FLAGS_OF_TESTS) $(CHECK_CPPFLAGS)
tests_unit_check_npy_LDADD = $(LIBS_OF_TESTS) $(CHECK_LDFLAGS) $(CHECK_LIBS)
