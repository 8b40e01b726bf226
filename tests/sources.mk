# Written by m4/list-sources: do not edit.
check_programs =
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
