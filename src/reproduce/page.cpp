#include "reproduce/reproduce.hpp"

namespace lockflight::reproduce {

std::string render_html(const std::vector<paper>&, const std::vector<outcome>& outcomes) {
  return to_json(outcomes).dump();
}

}  // namespace lockflight::reproduce
