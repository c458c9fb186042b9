// What every folder of src/ may use.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/joined.hpp"
#include "base/median.hpp"
#include "base/metrics_text.hpp"
#include "base/mpi_interface.hpp"
#include "base/number.hpp"
#include "base/replaced_file.hpp"
#include "base/visible_text.hpp"
#include "base/whole_file.hpp"

namespace lockflight {
namespace {

TEST(VisibleText, IsOneLineOfUtf8) {
  EXPECT_EQ(visible("a b\\é€😀"), "a b\\é€😀");
  EXPECT_EQ(visible("a\n\t\x1b[31m\x7f"), "a\\x0a\\x09\\x1b[31m\\x7f");
  EXPECT_EQ(visible("a\u202eb\u2066\u061c\u200f"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xd8\\x9c\\xe2\\x80\\x8f")
      << "they would turn the text around";
  EXPECT_EQ(visible("\u2013\u20ac\u2065"), "\u2013\u20ac\u2065") << "their neighbours do not";
  EXPECT_EQ(visible("\xc2\x9b|\xc2\xa0"), "\\xc2\\x9b|\xc2\xa0") << "C1, and what follows it";
  // Half a character, a longer form, a surrogate, and one beyond the last.
  for (const char* const bad : {"\xff", "\xc3", "\xe2\x82", "\xc0\x80", "\xe0\x80\x80",
                                "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\x80"}) {
    EXPECT_EQ(visible(bad).size(), 4 * std::string(bad).size()) << visible(bad);
    EXPECT_EQ(character_bytes(bad), 0u);
  }
  EXPECT_EQ(visible(visible("\xff\n")), visible("\xff\n"));
}

TEST(VisibleText, IsCutWhereACharacterEnds) {
  EXPECT_EQ(cut("aé€😀b", 0), "");
  EXPECT_EQ(cut("aé€😀b", 4), "aé€😀");
  EXPECT_EQ(cut("aé", 9), "aé");
  EXPECT_EQ(in_quotes("jobs"), "'jobs'");
  EXPECT_EQ(in_quotes(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(in_quotes("a€€", 2), "'a€…'");
  EXPECT_EQ(in_quotes(std::string(79, 'x') + "€€"), "'" + std::string(79, 'x') + "€…'");
  EXPECT_EQ(in_quotes("\x1b\x1b", 6), "'\\x1b\\x…'");
  EXPECT_EQ(in_quotes(std::string(1 << 20, '\xff'), 4), "'\\xff…'");
}

TEST(VisibleText, IsReversibleForPrograms) {
  EXPECT_EQ(reversible("a\n\x1b é\\x"), "a\n\x1b é\\x");
  EXPECT_EQ(reversible("\xff"), "\\xff");
  EXPECT_EQ(reversible("\\xff"), "\\x5cxff");
  EXPECT_EQ(reversible("\\\xff"), "\\\\xff");
  EXPECT_EQ(reversible_line("\n\\x0a"), "\\x0a\\x5cx0a");
}

TEST(Number, IsTheWholeText) {
  EXPECT_EQ(read_number<int>("-12"), -12);
  EXPECT_EQ(read_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(read_number<double>("2.5"), 2.5);
  EXPECT_TRUE(std::isinf(read_number<double>("inf").value()));
  for (const char* other : {"", "-", " 1", "1 ", "1x", "+1", "0x1", "1.5", "2147483648"})
    EXPECT_EQ(read_number<int>(other), std::nullopt) << "'" << other << "'";
  EXPECT_EQ(read_number<std::uint64_t>("-1"), std::nullopt);
  // The text ends where the view does.
  EXPECT_EQ(read_number<int>(std::string_view("123").substr(0, 2)), 12);
}

TEST(Joined, HasTheSeparatorBetweenTwo) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string_view>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined(std::set<std::string>{"a", "b"}, "/"), "a/b");
  // An empty word is a word.
  EXPECT_EQ(joined(std::vector<std::string>{"", "a", ""}, ","), ",a,");
}

TEST(Median, IsInTheMiddle) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({7}), 7);
  EXPECT_EQ(median_of({9, 1, 2}), 2);
  EXPECT_EQ(median_of({9, 1, 2, 4}), 3);
}

TEST(WholeFile, IsReadOrSaysWhyNot) {
  const auto error_of = [](const char* path) {
    try {
      EXPECT_EQ(whole_file(path, 1000), "");
    } catch (const std::system_error& e) {
      return e.code();
    }
    return std::error_code();
  };
  EXPECT_FALSE(error_of("/dev/null"));
  EXPECT_EQ(error_of("/dev/zero"), std::errc::file_too_large) << "it has no end";
  EXPECT_EQ(error_of("/nowhere/file"), std::errc::no_such_file_or_directory);
  EXPECT_EQ(error_of("/"), std::errc::is_a_directory);
  EXPECT_NE(whole_file("/proc/self/status").find("Pid:"), std::string::npos);
}

TEST(Clock, GoesOn) {
  const std::uint64_t before = now_ns();
  while (now_ns() == before) continue;
  EXPECT_GT(now_ns(), before);
}

TEST(Descriptor, IsClosedByItsLastOwner) {
  int fd = -1;
  {
    descriptor first(open("/dev/null", O_RDONLY | O_CLOEXEC));
    fd = first.get();
    ASSERT_GT(fd, STDERR_FILENO);
    descriptor second(std::move(first));
    EXPECT_EQ(second.get(), fd);
    descriptor third;
    EXPECT_FALSE(third);
    third = std::move(second);
    EXPECT_EQ(third.get(), fd);
    EXPECT_NE(fcntl(fd, F_GETFD), -1);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  errno = EACCES;
  EXPECT_FALSE(descriptor(-1));
  EXPECT_EQ(errno, EACCES);
}

// Without standard input, and where no number above is left, it has nothing and says why.
TEST(Descriptor, IsNeverAStandardOne) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(STDIN_FILENO);
    const descriptor above(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (above.get() <= STDERR_FILENO || (fcntl(above.get(), F_GETFD) & FD_CLOEXEC) == 0) _exit(1);
    if (fcntl(STDIN_FILENO, F_GETFD) != -1) _exit(2);
    const rlimit few{STDERR_FILENO + 1, STDERR_FILENO + 1};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(3);
    const descriptor none(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (none || errno == 0) _exit(4);
    _exit(fcntl(STDIN_FILENO, F_GETFD) == -1 ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MpiInterface, IsThatOfTheLibraryForC) {
  const std::vector<std::pair<const char*, mpi_interface>> expected{
      {"libmpi_abi.so.1", mpi_interface::standard},   {"libpmpi_abi.so.1", mpi_interface::standard},
      {"libmpi.so.12", mpi_interface::mpich},       // MPICH, Intel MPI, MVAPICH
      {"libmpich.so.12", mpi_interface::mpich},     // Debian
      {"libmpi_cray.so.12", mpi_interface::mpich},  // Cray, and with the name of a compiler
      {"libmpi_gnu_123.so.12", mpi_interface::mpich}, {"libpmpi.so.12", mpi_interface::mpich},
      {"libmpi.so.40", mpi_interface::open_mpi},      {"libmpi.so.20", mpi_interface::open_mpi},
      {"libmpifort.so.12", mpi_interface::unknown},   {"libmpicxx.so.12", mpi_interface::unknown},
      {"libmpi_mpifh.so.40", mpi_interface::unknown}, {"libmpi_ilp64.so.4", mpi_interface::unknown},
      {"libmpi.so", mpi_interface::unknown},          {"libmpifi.so.12", mpi_interface::unknown},
      {"libc.so.6", mpi_interface::unknown},          {"", mpi_interface::unknown}};
  for (const auto& [name, is] : expected) EXPECT_EQ(mpi_interface_of(name), is) << name;
}

TEST(MetricsText, HasEachFamilyBeforeItsSamples) {
  using enum metrics_text::type;
  metrics_text made;
  made.single("a_total", counter, "How many.", {{"domain", "d"}},
              std::uint64_t{18446744073709551615u});
  made.family("b", gauge, "Some.");
  made.sample({}, -3);
  made.sample({{"x", "quote\" back\\ new\nline"}, {"y", ""}}, 0.25);
  EXPECT_EQ(made.text(),
            "# HELP a_total How many.\n"
            "# TYPE a_total counter\n"
            "a_total{domain=\"d\"} 18446744073709551615\n"
            "# HELP b Some.\n"
            "# TYPE b gauge\n"
            "b -3\n"
            "b{x=\"quote\\\" back\\\\ new\\nline\",y=\"\"} 0.25\n");
}

TEST(ReplacedFile, LeavesNothingBesideItIfThatIsNotPossible) {
  const std::string folder = testing::TempDir() + "lockflight-replaced-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string file = folder + "/a";
  ASSERT_TRUE(replace_file(file, "old", 0600));
  ASSERT_TRUE(replace_file(file, "new", 0600));
  EXPECT_EQ(whole_file(file), "new");
  ASSERT_EQ(mkdir((folder + "/b").c_str(), 0700), 0);
  EXPECT_FALSE(replace_file(folder + "/b", "x", 0600));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_NE(access((folder + "/b~").c_str(), F_OK), 0);
  for (const char* const each : {"/a", "/b", ""}) EXPECT_EQ(remove((folder + each).c_str()), 0);
}

}  // namespace
}  // namespace lockflight
