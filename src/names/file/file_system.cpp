#include "names/file/file_system.hpp"

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockflight::detail {
namespace {

struct file_system {
  std::uint32_t type;
  std::string_view name;
};

// Numbers that linux/magic.h lacks are from statfs(2) and from their own sources.
constexpr std::array unusable{
    file_system{NFS_SUPER_MAGIC, "NFS"},     file_system{0xFF534D42, "CIFS"},
    file_system{0xFE534D42, "SMB"},          file_system{SMB_SUPER_MAGIC, "SMB"},
    file_system{V9FS_MAGIC, "9p"},           file_system{0x65735546, "FUSE"},
    file_system{AFS_SUPER_MAGIC, "AFS"},     file_system{AFS_FS_MAGIC, "AFS"},
    file_system{CODA_SUPER_MAGIC, "Coda"},   file_system{0x00C36400, "Ceph"},
    file_system{0x01161970, "GFS2"},         file_system{OCFS2_SUPER_MAGIC, "OCFS2"},
    file_system{0x0BD00BD0, "Lustre"},       file_system{0x19830326, "BeeGFS"},
    file_system{0x47504653, "GPFS"},         file_system{0x786F4256, "vboxsf"},
    file_system{0xBACBACBC, "VMware's hgfs"}};

}  // namespace

std::string_view name_of_unusable_file_system(long type) noexcept {
  // The type is a signed number of 32 bits on some kernels.
  const auto found =
      std::ranges::find(unusable, static_cast<std::uint32_t>(type), &file_system::type);
  return found == unusable.end() ? std::string_view{} : found->name;
}

}  // namespace lockflight::detail
