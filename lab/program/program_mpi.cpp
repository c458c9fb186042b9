#include "lab/program/program_mpi.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "lab/program/elf_file.hpp"

namespace lockflight::lab {
namespace {

namespace fs = std::filesystem;

// Programs have hundreds of libraries, not more.
constexpr std::size_t most_libraries = 4096;
constexpr int deepest_include = 8;

void add_words(const char* text, std::vector<std::string>& to) {
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string folder; std::getline(words, folder, ':');)
    if (!folder.empty()) to.push_back(folder);
}

/// The folders that a file such as /etc/ld.so.conf names. The wildcard of an include is taken for
/// all files of its folder.
void add_configured(const fs::path& file, std::vector<std::string>& to, int depth = 0) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string first;
    if (!(words >> first)) continue;
    std::string second;
    if (first != "include" || !(words >> second)) {
      to.push_back(first);
      continue;
    }
    if (depth == deepest_include) continue;
    std::error_code none;
    for (const auto& one : fs::directory_iterator(fs::path(second).parent_path(), none))
      if (one.path().extension() == fs::path(second).extension())
        add_configured(one.path(), to, depth + 1);
  }
}

[[nodiscard]] std::vector<std::string> usual_folders() {
  std::vector<std::string> all;
  add_configured("/etc/ld.so.conf", all);
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) all.emplace_back(folder);
  return all;
}

/// A file that is still to be read, and DT_RPATH of those that need it, which holds for it as well.
struct object {
  std::string path;
  std::vector<std::string> inherited;
};

/// The loader's search (ld.so(8)), without its cache. Libraries of other machines are passed over.
[[nodiscard]] std::string found_file(const std::string& name, const elf_file& by,
                                     const std::vector<std::string>& inherited,
                                     const std::vector<std::string>& usual) {
  if (name.find('/') != std::string::npos) return name;
  std::vector<std::string> folders;
  if (by.runpath.empty()) folders = inherited;
  add_words(std::getenv("LD_LIBRARY_PATH"), folders);
  folders.insert(folders.end(), by.runpath.begin(), by.runpath.end());
  folders.insert(folders.end(), usual.begin(), usual.end());
  for (const std::string& folder : folders) {
    const std::string file = folder + "/" + name;
    if (access(file.c_str(), R_OK) != 0) continue;
    try {
      static_cast<void>(read_elf(file));
      return file;
    } catch (const unreadable_elf&) {
      continue;
    }
  }
  return "";
}

/// The library of AddressSanitizer among those that a program needs, which compilers put there
/// unless they link it statically; empty if there is none.
[[nodiscard]] std::string address_sanitizer_of(const elf_file& program,
                                               const std::vector<std::string>& usual) {
  for (const std::string& name : program.needed) {
    if (!name.starts_with("libasan.so") && !name.starts_with("libclang_rt.asan")) continue;
    const std::string at = found_file(name, program, program.rpath, usual);
    return at.empty() ? name : at;
  }
  return "";
}

/// The drop-in of the build or the installation that this program is of; empty if it has none.
[[nodiscard]] std::string drop_in_here(mpi_interface is) {
  std::error_code none;
  const fs::path own = fs::read_symlink("/proc/self/exe", none).parent_path();
  if (own.empty()) return "";
  const std::string installed = LOCKFLIGHT_LIBDIR "/lockflight";
  for (const fs::path& folder :
       {own, own / "..", own / ".." / installed, own / ".." / ".." / installed}) {
    const fs::path file = fs::weakly_canonical(folder / details_of(is).drop_in, none);
    if (!none && fs::exists(file, none)) return file.string();
  }
  return "";
}

}  // namespace

program_mpi mpi_of_program(const std::string& path) {
  program_mpi found;
  struct stat is {};
  found.is_privileged = stat(path.c_str(), &is) == 0 && (is.st_mode & (S_ISUID | S_ISGID)) != 0;
  const elf_file program = read_elf(path);
  found.is_dynamic = program.is_dynamic;
  const std::vector<std::string> usual = usual_folders();
  found.address_sanitizer = address_sanitizer_of(program, usual);
  std::set<std::string> seen;
  // Breadth first, as the loader: what it would load first decides.
  std::deque<object> unread{{path, {}}};
  while (!unread.empty() && seen.size() < most_libraries) {
    const object one = std::move(unread.front());
    unread.pop_front();
    elf_file file;
    try {
      file = read_elf(one.path);
    } catch (const unreadable_elf&) {
      found.missing.push_back(one.path);
      continue;
    }
    std::vector<std::string> inherited = file.rpath;
    inherited.insert(inherited.end(), one.inherited.begin(), one.inherited.end());
    for (const std::string& name : file.needed) {
      const mpi_interface its = mpi_interface_of(name.substr(name.rfind('/') + 1));
      if (its != mpi_interface::unknown) {
        found.interface = its;
        found.library = name;
        found.needed_by = one.path;
        found.drop_in = drop_in_here(its);
        return found;
      }
      if (!seen.insert(name).second) continue;
      const std::string at = found_file(name, file, inherited, usual);
      if (at.empty())
        found.missing.push_back(name);
      else
        unread.push_back({at, inherited});
    }
  }
  return found;
}

}  // namespace lockflight::lab
