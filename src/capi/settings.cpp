#include "capi/settings.hpp"

namespace lockflight::capi {

lock::parameter_values parse_settings(std::string_view text) {
  lock::parameter_values found;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const auto read = catalogue::parse_assignment(one);
    if (!read)
      throw std::invalid_argument("parameters '" + std::string(one) +
                                  "' (accepted: name=number, such as T_R=100, joined by commas)");
    found.insert_or_assign(read->first, read->second);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return found;
}

}  // namespace lockflight::capi
