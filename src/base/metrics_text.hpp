// Metrics as text in the exposition format of Prometheus, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockflight {

/// The families of metrics of one file, one after the other: a family's samples follow it. Names of
/// families and labels, and help texts, are those of the format already; a label's value may be any
/// UTF-8 text.
class metrics_text {
 public:
  enum class type : std::uint8_t { counter, gauge };
  using labels = std::vector<std::pair<std::string_view, std::string_view>>;

  void family(std::string_view name, type of, std::string_view help) {
    name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(name);
    text_.append(of == type::counter ? " counter\n" : " gauge\n");
  }
  /// Of the last family.
  void sample(const labels& of, std::integral auto value) { add(of, digits(value)); }
  void sample(const labels& of, double value) { add(of, digits(value)); }
  /// A family of one sample.
  void single(std::string_view name, type of, std::string_view help, const labels& its,
              auto value) {
    family(name, of, help);
    sample(its, value);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] static std::string digits(auto value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }
  void add(const labels& of, std::string_view value) {
    text_ += name_;
    char before = '{';
    for (const auto& [label, is] : of) {
      text_ += std::exchange(before, ',');
      text_.append(label).append("=\"");
      add_escaped(is);
      text_ += '"';
    }
    text_ += before == '{' ? " " : "} ";
    text_.append(value).append("\n");
  }
  void add_escaped(std::string_view value) {
    for (const char each : value) {
      if (each == '\n') {
        text_ += "\\n";
        continue;
      }
      if (each == '"' || each == '\\') text_ += '\\';
      text_ += each;
    }
  }

  std::string_view name_;
  std::string text_;
};

}  // namespace lockflight
