// A file that exists completely or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lab/program/cleanup.hpp"

namespace lockflight::lab {

/// The constructor refuses a path that cannot be written, before a long run. The file is written
/// beside the target and renamed by commit; without commit nothing is left.
class output_file {
 public:
  /// `argument` is the option that named the path. Throws usage_error when it cannot be written.
  output_file(const std::string& argument, const std::string& path);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  /// The path as the user gave it.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The real path of the file.
  [[nodiscard]] const std::string& target() const { return target_; }
  /// The path where another writer may write the content that commit() then puts in place.
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

  /// Writes all of the file and puts it in place. Throws std::system_error.
  void commit(std::string_view content);
  /// Puts in place what was written to temporary().
  void commit();

 private:
  void write_all(std::string_view content);

  std::string argument_;
  std::string path_;
  std::string target_;     ///< symbolic links followed
  std::string temporary_;  ///< the target itself where that is a device or a pipe
  int fd_ = -1;
  std::optional<removed_when_interrupted> guard_;
};

/// Throws usage_error if both are given and are the same file; it names the second.
void refuse_same(const std::optional<output_file>& a, const char* name_of_a,
                 const std::optional<output_file>& b, const char* name_of_b);
void refuse_same(const output_file& a, const char* name_of_a, const output_file& b,
                 const char* name_of_b);

}  // namespace lockflight::lab
