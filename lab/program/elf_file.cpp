#include "lab/program/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/descriptor.hpp"

namespace lockflight::lab {
namespace {

using header = ElfW(Ehdr);
using segment = ElfW(Phdr);
using entry = ElfW(Dyn);

constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char own_order =
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
#if defined(__x86_64__)
constexpr int own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int own_machine = EM_AARCH64;
#else
constexpr int own_machine = EM_NONE;  // any
#endif

// A damaged file may claim any number of them.
constexpr std::size_t most_entries = 1 << 16;
constexpr std::size_t longest_name = 1 << 16;

[[nodiscard]] unreadable_elf not_read() {
  return unreadable_elf(std::string("it cannot be read: ") + std::strerror(errno));
}

/// A file of which parts are read.
class parts_of {
 public:
  explicit parts_of(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (!file_) throw not_read();
    struct stat is {};
    if (fstat(file_.get(), &is) != 0) throw not_read();
    if (!S_ISREG(is.st_mode)) throw unreadable_elf("this is not a file");
    size_ = static_cast<std::uint64_t>(is.st_size);
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Up to so many bytes from there on: fewer at the end of the file.
  [[nodiscard]] std::string bytes(std::uint64_t from, std::size_t count) const {
    if (from >= size_) return "";
    std::string found(static_cast<std::size_t>(std::min<std::uint64_t>(count, size_ - from)), '\0');
    std::size_t there = 0;
    while (there < found.size()) {
      const ssize_t more = pread(file_.get(), found.data() + there, found.size() - there,
                                 static_cast<off_t>(from + there));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) throw not_read();
      if (more == 0) break;
      there += static_cast<std::size_t>(more);
    }
    found.resize(there);
    return found;
  }

  /// Reads so many records; throws if the file ends before.
  template <class Record>
  [[nodiscard]] std::vector<Record> records(std::uint64_t from, std::size_t count) const {
    const std::string found = bytes(from, count * sizeof(Record));
    if (found.size() != count * sizeof(Record))
      throw unreadable_elf("this is an ELF file that is cut off");
    std::vector<Record> all(count);
    if (count != 0) std::memcpy(all.data(), found.data(), found.size());
    return all;
  }

  /// The text that ends with a zero byte.
  [[nodiscard]] std::string text(std::uint64_t from) const {
    const std::string found = bytes(from, longest_name);
    const std::size_t end = found.find('\0');
    if (end == std::string::npos) throw unreadable_elf("this is an ELF file that is damaged");
    return found.substr(0, end);
  }

 private:
  descriptor file_;
  std::uint64_t size_ = 0;
};

[[nodiscard]] header checked_header(const parts_of& file) {
  const std::string begin = file.bytes(0, 128);
  if (begin.starts_with("#!"))
    throw unreadable_elf("this is a script, whose MPI is that of the programs which it runs: " +
                         begin.substr(0, begin.find('\n')));
  if (!begin.starts_with(ELFMAG)) throw unreadable_elf("this is not an executable file (ELF)");
  const auto at = [&](int i) {
    return static_cast<std::size_t>(i) < begin.size()
               ? static_cast<unsigned char>(begin[static_cast<std::size_t>(i)])
               : 0;
  };
  const header is = at(EI_CLASS) == own_class && at(EI_DATA) == own_order
                        ? file.records<header>(0, 1).front()
                        : header{};
  if (is.e_ident[EI_CLASS] != own_class || (own_machine != EM_NONE && is.e_machine != own_machine))
    throw unreadable_elf("this is an executable file of another kind of machine");
  if (is.e_type != ET_EXEC && is.e_type != ET_DYN)
    throw unreadable_elf("this is an ELF file, but neither a program nor a shared library");
  if (is.e_phentsize != sizeof(segment) || is.e_phnum == PN_XNUM)
    throw unreadable_elf("this is an ELF file that is damaged");
  return is;
}

/// The offset in the file of an address of the loaded program.
[[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address,
                                                     const std::vector<segment>& segments) {
  for (const segment& one : segments)
    if (one.p_type == PT_LOAD && address >= one.p_vaddr && address - one.p_vaddr < one.p_filesz)
      return one.p_offset + (address - one.p_vaddr);
  return std::nullopt;
}

/// The folders of a search path, with the file's own folder in place of $ORIGIN.
[[nodiscard]] std::vector<std::string> folders_in(std::string_view path,
                                                  const std::string& origin) {
  std::vector<std::string> all;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    std::string folder(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    for (const std::string_view name : {"${ORIGIN}", "$ORIGIN"})
      for (std::size_t at = 0; (at = folder.find(name, at)) != std::string::npos;
           at += origin.size())
        folder.replace(at, name.size(), origin);
    if (!folder.empty()) all.push_back(std::move(folder));
  }
  return all;
}

[[nodiscard]] std::string folder_of(const std::string& path) {
  char* const full = realpath(path.c_str(), nullptr);
  if (full == nullptr) return ".";
  const std::string file = full;
  std::free(full);
  return file.substr(0, std::max<std::size_t>(file.rfind('/'), 1));
}

}  // namespace

elf_file read_elf(const std::string& path) {
  const parts_of file(path);
  const header is = checked_header(file);
  const auto segments = file.records<segment>(is.e_phoff, is.e_phnum);
  elf_file found;
  const auto dynamic = std::ranges::find(segments, PT_DYNAMIC, &segment::p_type);
  if (dynamic == segments.end()) return found;
  const auto entries = file.records<entry>(
      dynamic->p_offset,
      std::min<std::size_t>(static_cast<std::size_t>(dynamic->p_filesz / sizeof(entry)),
                            most_entries));
  const auto end = std::ranges::find(entries, DT_NULL, &entry::d_tag);
  std::optional<std::uint64_t> names;
  for (auto one = entries.begin(); one != end; ++one)
    if (one->d_tag == DT_STRTAB) names = offset_of(one->d_un.d_ptr, segments);
  const std::string origin = folder_of(path);
  for (auto one = entries.begin(); one != end; ++one) {
    if (one->d_tag != DT_NEEDED && one->d_tag != DT_RPATH && one->d_tag != DT_RUNPATH) continue;
    if (!names || one->d_un.d_val > file.size())
      throw unreadable_elf("this is an ELF file that is damaged");
    const std::string text = file.text(*names + one->d_un.d_val);
    if (one->d_tag == DT_NEEDED) found.needed.push_back(text);
    if (one->d_tag == DT_RPATH) found.rpath = folders_in(text, origin);
    if (one->d_tag == DT_RUNPATH) found.runpath = folders_in(text, origin);
  }
  // A program that is linked statically, but may lie anywhere, has this section too.
  const bool has_loader =
      std::ranges::find(segments, PT_INTERP, &segment::p_type) != segments.end();
  found.is_dynamic = has_loader || !found.needed.empty();
  return found;
}

}  // namespace lockflight::lab
