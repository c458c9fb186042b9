// Reads the JSON of a domain's values. Only the files of this folder include this.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "names/agent/etcd/text.hpp"

namespace lockflight::cluster {

/// Thrown where a key or value is not of the format.
struct unlike {
  std::string expected;
};
[[nodiscard]] bad_entry not_of_format(std::string_view key, std::string_view text,
                                      const unlike& what);

/// An object whose fields are read one by one. Each function throws `unlike`.
class json_object {
 public:
  /// A whole value of etcd. It says the version of its format.
  [[nodiscard]] static json_object whole(std::string_view text);
  [[nodiscard]] static json_object part(const nlohmann::json& of);

  [[nodiscard]] bool has(const char* name) const { return fields_.contains(name); }
  [[nodiscard]] const nlohmann::json& field(const char* name, const char* expected) const;
  [[nodiscard]] std::string text(const char* name) const;
  [[nodiscard]] bool truth(const char* name) const;
  [[nodiscard]] member_id id(const char* name) const;
  template <std::unsigned_integral Number>
  [[nodiscard]] Number number(const char* name) const {
    return static_cast<Number>(number_up_to(name, std::numeric_limits<Number>::max()));
  }
  [[nodiscard]] epoch_number epoch(const char* name) const {
    return static_cast<epoch_number>(number_up_to(name, last_epoch));
  }
  /// The array's elements, each of which `read` makes of its JSON.
  template <class Read>
  [[nodiscard]] auto list(const char* name, Read read) const {
    std::vector<decltype(read(fields_))> all;
    const nlohmann::json& array = field(name, "an array");
    if (!array.is_array()) throw unlike{std::string("the field \"") + name + "\": an array"};
    for (const nlohmann::json& each : array) all.push_back(read(each));
    return all;
  }

 private:
  explicit json_object(nlohmann::json fields) : fields_(std::move(fields)) {}
  [[nodiscard]] std::uint64_t number_up_to(const char* name, std::uint64_t most) const;

  nlohmann::json fields_;
};

/// No value if the text is not 16 hexadecimal digits, or all of them are 0.
[[nodiscard]] std::optional<member_id> read_member_id(std::string_view text);
/// Pairs of hexadecimal digits as bytes.
[[nodiscard]] std::optional<std::string> from_hexadecimal(std::string_view text);

[[nodiscard]] epoch_value read_epoch(const json_object& from);
[[nodiscard]] member_value read_member(const json_object& from);
[[nodiscard]] std::optional<member_place> read_place(const json_object& from);
[[nodiscard]] beat_value read_beat(const json_object& from);
[[nodiscard]] cluster_value read_cluster(const json_object& from);

}  // namespace lockflight::cluster
