// What an agent says on standard error: a line of JSON for each event, as log collectors read them.
#pragma once

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

  std::string domain_;
};

}  // namespace lockflight::cluster
