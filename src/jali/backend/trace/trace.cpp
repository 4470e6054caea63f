#include "jali/backend/trace/trace.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "jali/base/error.h"

namespace jali::backend {

namespace {

// Text is put together without streams: their tables of locales are one a process, and in a Python
// extension they may be those of another C++ library.
template <class... Args>
void format(std::string& out, const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), pattern, args...);
  out += text;
}

template <class Range, class Print>
void write_list(std::string& out, const Range& range, Print print) {
  out += '[';
  const char* separator = "";
  for (const auto& x : range) {
    out += separator;
    out += print(x);
    separator = ", ";
  }
  out += ']';
}

void write_value(std::string& out, std::uint64_t x) { out += std::to_string(x); }
void write_value(std::string& out, bool x) { out += x ? "true" : "false"; }
void write_value(std::string& out, const std::string& x) { out += '"' + x + '"'; }
void write_value(std::string& out, const trace::Shape::List& x) {
  write_list(out, x, [](std::uint64_t item) { return std::to_string(item); });
}

// Names of operations, shapes, words and engines are plain identifiers, so nothing needs escaping.
void write_fields(std::string& out, const trace::Shape& shape) {
  for (const auto& [name, value] : shape.values()) {
    out += ", \"" + name + "\": ";
    std::visit([&](const auto& x) { write_value(out, x); }, value);
  }
}

void write_number(std::string& out, const char* name, std::uint64_t value) {
  out += ", \"";
  out += name;
  out += "\": " + std::to_string(value);
}

void write_extents(std::string& out, const char* name, const std::vector<Extent>& extents) {
  out += ", \"";
  out += name;
  out += "\": ";
  write_list(out, extents, [](const Extent& e) {
    return "[\"" + std::string(name_of(e.kind)) + "\", " + std::to_string(e.object) + ", " +
           std::to_string(e.offset) + ", " + std::to_string(e.bytes) + ']';
  });
}

void write_json(std::string& out, const Record& r) {
  out += "{\"op\": \"" + r.op + '"';
  write_number(out, "start", r.start);
  write_number(out, "thread", r.thread);
  write_fields(out, r.shape);
  write_extents(out, "reads", r.reads);
  write_extents(out, "writes", r.writes);
  write_number(out, "bytes_read", r.bytes_read);
  write_number(out, "bytes_written", r.bytes_written);
  write_number(out, "mults", r.mults);
  write_number(out, "stream_bytes", r.stream_bytes);
  write_number(out, "complex_butterflies", r.complex_butterflies);
  write_number(out, "complex_products", r.complex_products);
  format(out, ", \"seconds\": %.9g}\n", r.seconds);
}

}  // namespace

namespace trace {

void Shape::set(const std::string& name, Value value) {
  const auto at = std::ranges::find(values_, name, &std::pair<std::string, Value>::first);
  if (at != values_.end()) {
    at->second = std::move(value);
  } else {
    values_.emplace_back(name, std::move(value));
  }
}

template <class T>
const T& Shape::get(const std::string& name) const {
  const auto at = std::ranges::find(values_, name, &std::pair<std::string, Value>::first);
  const T* const value = at == values_.end() ? nullptr : std::get_if<T>(&at->second);
  require<InvalidArgument>(value != nullptr,
                           [&] { return "the shape of this operation has no such " + name; });
  return *value;
}

std::uint64_t Shape::number(const std::string& name) const { return get<std::uint64_t>(name); }
bool Shape::flag(const std::string& name) const { return get<bool>(name); }
const Shape::List& Shape::list(const std::string& name) const { return get<List>(name); }

}  // namespace trace

Trace::Trace(const std::string& commit) {
  const bool plain = std::ranges::all_of(
      commit, [](char c) { return ' ' <= c && c <= '~' && c != '"' && c != '\\'; });
  require<InvalidArgument>(plain && !commit.empty() && commit.size() <= 200,
                           "the commit of a trace has 1 to 200 printable characters of ASCII, and "
                           "no quotation marks and backslashes");
  header_.set("commit", commit);
}

void Trace::describe(const std::string& name, trace::Shape::Value value) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, old] : header_.values()) {
    require<InvalidArgument>(known != name || old == value, [&] {
      return "this trace is of an engine with another " + name + ": give every engine its own";
    });
  }
  header_.set(name, std::move(value));
}

trace::Shape Trace::header() const {
  const std::lock_guard lock(mutex_);
  return header_;
}

void Trace::start(Record& record) {
  const std::lock_guard lock(mutex_);
  record.start = started_++;
  record.thread = threads_.try_emplace(std::this_thread::get_id(), threads_.size()).first->second;
}

void Trace::append(Record record) {
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
}

void Trace::clear() {
  const std::lock_guard lock(mutex_);
  records_.clear();
}

std::size_t Trace::size() const {
  const std::lock_guard lock(mutex_);
  return records_.size();
}

std::vector<Record> Trace::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

std::vector<Total> Trace::totals() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Total> by_name;
  for (const Record& r : records_) {
    Total& t = by_name[r.op];
    t.op = r.op;
    t.count += 1;
    t.bytes_read += r.bytes_read;
    t.bytes_written += r.bytes_written;
    t.mults += r.mults;
    t.stream_bytes += r.stream_bytes;
    t.complex_butterflies += r.complex_butterflies;
    t.complex_products += r.complex_products;
    t.seconds += r.seconds;
  }
  std::vector<Total> totals;
  for (auto& [name, total] : by_name) totals.push_back(std::move(total));
  return totals;
}

std::string Trace::json_lines() const {
  const std::lock_guard lock(mutex_);
  std::string out = "{\"schema\": " + std::to_string(kSchema);
  write_fields(out, header_);
  out += "}\n";
  for (const Record& r : records_) write_json(out, r);
  return out;
}

std::string Trace::summary() const {
  std::string out;
  format(out, "%-20s%10s%14s%14s%14s%12s\n", "operation", "count", "MB read", "MB written",
         "M mults", "ms");
  const auto row = [&](const Total& t) {
    format(out, "%-20s%10llu%14.3f%14.3f%14.3f%12.3f\n", t.op.c_str(),
           static_cast<unsigned long long>(t.count), static_cast<double>(t.bytes_read) / 1e6,
           static_cast<double>(t.bytes_written) / 1e6, static_cast<double>(t.mults) / 1e6,
           t.seconds * 1e3);
  };
  Total all;
  all.op = "total";
  for (const Total& t : totals()) {
    row(t);
    all.count += t.count;
    all.bytes_read += t.bytes_read;
    all.bytes_written += t.bytes_written;
    all.mults += t.mults;
    all.seconds += t.seconds;
  }
  row(all);
  return out;
}

}  // namespace jali::backend
