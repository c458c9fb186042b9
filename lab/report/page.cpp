#include "lab/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/joined.hpp"

namespace lockflight::report {

std::string_view part_named(const std::vector<page_part>& parts, std::string_view name) {
  const auto at = std::find_if(parts.begin(), parts.end(),
                               [&](const page_part& part) { return part.name == name; });
  if (at == parts.end()) throw std::logic_error(fmt::format("a page has no part '{}'", name));
  return at->text;
}

std::string page_of(std::string_view body, slots values,
                    const std::vector<std::string>& own_locks) {
  const auto part = [](std::string_view name) { return part_named(page_parts(), name); };
  values["style"] = part("style");
  values["chart_js"] = part("chart_js");
  for (const char* const script : {"data", "labels", "draw", "controls"})
    values[fmt::format("{}_script", script)] = part(fmt::format("report_{}", script));
  values["chart_js_licence"] = escape_html(part("chart_js_licence"));
  values["own"] = escape_html(joined(own_locks, " "));
  values.try_emplace("own_style");
  for (const char* const name : {"head", "brand", "foot", "scripts"}) {
    std::string filled_part = filled(part(name), values);
    // The template has a new line after the slot.
    if (filled_part.ends_with('\n')) filled_part.pop_back();
    values[name] = std::move(filled_part);
  }
  return filled(body, values);
}

std::string banner(std::string_view state, std::string_view mark, const std::string& headline,
                   const std::string& detail) {
  return fmt::format(
      "<div class=\"verdict {}\" role=\"{}\"><span class=\"mark\" aria-hidden=\"true\">{}</span>"
      "<p><strong>{}</strong> <span>{}</span></p></div>",
      state, state == "bad" ? "alert" : "status", mark, escape_html(headline), escape_html(detail));
}

}  // namespace lockflight::report
