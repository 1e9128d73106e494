// Words of numbers that each row of the left matrix, and each column of the right one, is scaled to
// by its magnitude; and what takes the products back.
#pragma once

#include "mutators/operand_words.hpp"

namespace evo {

/// The loop over tiles around the only product, which begins at 0 and ends with the matrices, in
/// multiples of `depth` along k; nullptr for any other, or where tiles are several or filled by way
/// of registers.
const DeviceLoop* loop_over_tiles(const Kernel& kernel, const WarpOperands& operands,
                                  std::int64_t depth);

class ScaledWords : public OperandWords {
public:
  /// `tiles`: the loop over tiles; nullptr where nothing is scaled.
  ScaledWords(const Kernel& kernel, const DependenceGraph& graph, const WarpOperands& operands,
              const ThreadBlock& block, const Launch& launch, const DeviceLoop* tiles)
      : OperandWords(kernel, graph, operands, block, launch), tiles_(tiles) {}

protected:
  const WarpMultiply& product() const { return operands_.products.front(); }
  /// $scale_of and $unit, leaf helpers, and names for a pass.
  Texts scaling(const std::string& scale, const std::string& unit);
  /// What a pass does with 16 bytes of $values in each slice or part, scaled.
  virtual std::string_view stores() const = 0;
  /// What the kernel's code is made of: $i, $j, $rows, $columns, $sum, and of both sides
  /// $left_units, $left_across, $left_place and so on.
  Texts places() const;
  /// Behind the loop over tiles, where sums are taken back by `code`.
  void write_results(std::string_view code, const Texts& texts);

  const DeviceLoop* tiles_;

  std::string pass(const WarpOperand& operand, Texts texts) const override;
  std::string grid(const WarpOperand& operand) const override;
  std::string threads(const WarpOperand& operand) const override;

private:
  void add_side(Texts& texts, const std::string& side, const WarpOperand& operand) const;
  std::string units(const WarpOperand& operand) const;
  std::string rounded(const WarpOperand& operand, Texts sizes) const;
  std::string further_bytes(const Texts& left, const Texts& right) const override;
  std::string further_regions(const Texts& left, const Texts& right) const override;
  std::string further_arguments(const WarpOperand& operand) const override;
};

} // namespace evo
