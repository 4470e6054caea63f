// The JSON objects that the benchmark programs print, one a line, in the form of `jali bench
// --json`.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace jali::bench {

/// An object whose fields keep the order in which they are added.
class Json {
 public:
  Json& set(std::string_view name, std::string_view text) { return add(name, quoted(text)); }
  Json& set(std::string_view name, const char* text) { return set(name, std::string_view(text)); }
  Json& set(std::string_view name, std::same_as<bool> auto flag) {
    return add(name, flag ? "true" : "false");
  }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  Json& set(std::string_view name, Number number) {
    return add(name, std::to_string(number));
  }
  /// Writes nine digits, or null for infinities and NaN, which JSON does not have.
  Json& set(std::string_view name, double number) {
    if (!std::isfinite(number)) return add(name, "null");
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", number);
    return add(name, text);
  }
  Json& set(std::string_view name, const Json& object) { return add(name, object.str()); }

  /// Appends the fields of another object.
  Json& append(const Json& other) {
    if (!fields_.empty() && !other.fields_.empty()) fields_ += ", ";
    fields_ += other.fields_;
    return *this;
  }

  std::string str() const { return "{" + fields_ + "}"; }
  void print() const {
    std::printf("%s\n", str().c_str());
    std::fflush(stdout);
  }

 private:
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out + '"';
  }
  Json& add(std::string_view name, std::string_view value) {
    if (!fields_.empty()) fields_ += ", ";
    fields_.append(quoted(name)).append(": ").append(value);
    return *this;
  }

  std::string fields_;
};

}  // namespace jali::bench
