// The log of an agent on standard error: a line of JSON for each event, as log collectors read
// them. Lines that nobody reads in time, or that find the disk full, are lost, and the next one
// that is written is preceded by one that says how many. One thread may write.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockflight::cluster {

class journal {
 public:
  using fields = nlohmann::ordered_json;

  explicit journal(std::string domain) : domain_(std::move(domain)) {}

  /// `event` is one word for programs; `text` is a sentence for people.
  void info(std::string_view event, const std::string& text,
            const fields& more = fields::object()) const {
    write("info", event, text, more);
  }
  void warn(std::string_view event, const std::string& text,
            const fields& more = fields::object()) const {
    write("warning", event, text, more);
  }
  void fail(std::string_view event, const std::string& text,
            const fields& more = fields::object()) const {
    write("error", event, text, more);
  }

 private:
  void write(const char* level, std::string_view event, const std::string& text,
             const fields& more) const;
  [[nodiscard]] std::string line_of(const char* level, std::string_view event,
                                    const std::string& text, const fields& more) const;

  std::string domain_;
  mutable std::uint64_t lost_ = 0;  // lines since the last one that was written
  mutable bool is_cut_ = false;     // the last of them was written in part
};

}  // namespace lockflight::cluster
