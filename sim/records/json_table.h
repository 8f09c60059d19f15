#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/records/json_fields.h"

/// Tables: many records of one type as {"columns": [names], "rows": [[values]]}, so that hundreds
/// of layers stay small and readable. A row is described like a record, and the names of its fields
/// are written once.
namespace lockstep {

class RowHeader {
 public:
  static constexpr bool kReading = false;
  template <class T>
  void field(std::string_view key, const T&, Range = {}) {
    names_.emplace_back(key);
  }
  template <class T, class F>
  void rows(std::string_view key, const std::vector<T>&, F describe_row) {
    RowHeader inner;
    const T blank{};
    describe_row(inner, blank);
    std::string name(key);
    for (std::size_t i = 0; i < inner.names_.size(); ++i) {
      name += (i == 0 ? " [" : ", ") + inner.names_[i];
    }
    names_.push_back(name + "]");
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

class RowWriter {
 public:
  static constexpr bool kReading = false;
  template <class T>
  void field(std::string_view, const T& value, Range = {}) {
    row_.push_back(write_value(value));
  }
  template <class T, class F>
  void rows(std::string_view, const std::vector<T>& items, F describe_row) {
    auto list = nlohmann::ordered_json::array();
    for (const T& item : items) {
      RowWriter inner;
      describe_row(inner, item);
      list.push_back(inner.take());
    }
    row_.push_back(std::move(list));
  }
  nlohmann::ordered_json take() { return std::move(row_); }

 private:
  nlohmann::ordered_json row_ = nlohmann::ordered_json::array();
};

class RowReader {
 public:
  static constexpr bool kReading = true;
  RowReader(const nlohmann::json& row, const JsonPath& at, std::size_t columns)
      : row_(row), at_(at) {
    require_array(row, at);
    if (row.size() != columns) {
      at.fail("a row of " + std::to_string(row.size()) + " values",
              "the table has " + std::to_string(columns) + " columns");
    }
  }
  template <class T>
  void field(std::string_view, T& value, Range range = natural_range<T>()) {
    read_value(row_[next_], at_.child(next_), range, value);
    ++next_;
  }
  template <class T, class F>
  void rows(std::string_view, std::vector<T>& items, F describe_row) {
    const JsonPath at = at_.child(next_);
    read_rows(row_[next_++], at, items, describe_row);
  }

  template <class T, class F>
  static void read_rows(const nlohmann::json& in, const JsonPath& at, std::vector<T>& items,
                        F describe_row) {
    RowHeader header;
    const T blank{};
    describe_row(header, blank);
    require_array(in, at);
    items.resize(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const JsonPath place = at.child(i);
      RowReader row(in[i], place, header.names().size());
      describe_row(row, items[i]);
    }
  }

 private:
  const nlohmann::json& row_;
  const JsonPath& at_;
  std::size_t next_ = 0;
};

template <class T, class F>
nlohmann::ordered_json write_table(const std::vector<T>& items, F describe_row) {
  RowHeader header;
  const T blank{};
  describe_row(header, blank);
  auto columns = nlohmann::ordered_json::array();
  for (const std::string& name : header.names()) columns.push_back(name);
  auto rows = nlohmann::ordered_json::array();
  for (const T& item : items) {
    RowWriter row;
    describe_row(row, item);
    rows.push_back(row.take());
  }
  auto table = nlohmann::ordered_json::object();
  table["columns"] = std::move(columns);
  table["rows"] = std::move(rows);
  return table;
}

/// Fields of `items` that the table does not hold keep their values; new items are default.
template <class T, class F>
void read_table(const nlohmann::json& in, const JsonPath& at, std::vector<T>& items,
                F describe_row) {
  RowHeader header;
  const T blank{};
  describe_row(header, blank);
  JsonReader table(in, at);
  const nlohmann::json& columns = table.child("columns");
  const JsonPath columns_at = at.child("columns");
  require_array(columns, columns_at);
  const nlohmann::json& rows = table.child("rows");
  table.finish();
  for (std::size_t i = 0; i < columns.size() || i < header.names().size(); ++i) {
    const std::string expected = i < header.names().size() ? header.names()[i] : "";
    if (i >= columns.size()) columns_at.fail("column \"" + expected + "\" is missing");
    if (i >= header.names().size()) columns_at.child(i).fail("unknown column");
    if (columns[i] != expected)
      columns_at.child(i).fail("this column must be \"" + expected + "\"");
  }
  RowReader::read_rows(rows, at.child("rows"), items, describe_row);
}

}  // namespace lockstep
