#include "fitness/protocol.hpp"

#include <stdexcept>
#include <tuple>
#include <utility>

#include "fitness/concat.hpp"

namespace evo {
namespace {

using nlohmann::json;

template <typename Owner, typename Member> struct Field {
  const char* name;
  Member Owner::* member;
};

template <typename Owner, typename Member>
Field(const char*, Member Owner::*) -> Field<Owner, Member>;

auto fields(const TensorSpec&) {
  using T = TensorSpec;
  return std::tuple{Field{"name", &T::name},
                    Field{"shape", &T::shape},
                    Field{"distribution", &T::distribution},
                    Field{"scale", &T::scale},
                    Field{"fan_in", &T::fan_in},
                    Field{"modifiers", &T::modifiers}};
}

auto fields(const Case&) {
  return std::tuple{Field{"name", &Case::name}, Field{"level", &Case::level},
                    Field{"sweep", &Case::sweep}, Field{"inputs", &Case::inputs}};
}

auto fields(const Monomial&) {
  return std::tuple{Field{"coefficient", &Monomial::coefficient}, Field{"dims", &Monomial::dims}};
}

/// Without the paths, which are not strings.
auto fields(const Problem&) {
  using T = Problem;
  return std::tuple{Field{"name", &T::name},
                    Field{"entry", &T::entry},
                    Field{"output_file", &T::output_file},
                    Field{"vary", &T::vary},
                    Field{"dim_order", &T::dim_order},
                    Field{"fixed_dims", &T::fixed_dims},
                    Field{"sizes", &T::sizes},
                    Field{"inputs", &T::inputs},
                    Field{"output", &T::output},
                    Field{"rtol", &T::rtol},
                    Field{"atol", &T::atol},
                    Field{"cases", &T::cases},
                    Field{"flops", &T::flops},
                    Field{"reference", &T::reference}};
}

auto fields(const SizeResult&) {
  using T = SizeResult;
  return std::tuple{Field{"size", &T::size},
                    Field{"median_ms", &T::median_ms},
                    Field{"spread_ms", &T::spread_ms},
                    Field{"reference_ms", &T::reference_ms},
                    Field{"calls", &T::calls},
                    Field{"max_abs_error", &T::max_abs_error},
                    Field{"relative_l2_error", &T::relative_l2_error},
                    Field{"violations", &T::violations}};
}

auto fields(const CaseFigures&) {
  using T = CaseFigures;
  return std::tuple{Field{"ideal_error", &T::ideal_error},
                    Field{"max_error", &T::max_error},
                    Field{"violations", &T::violations},
                    Field{"rms_error", &T::rms_error},
                    Field{"reference_rms_error", &T::reference_rms_error},
                    Field{"output_rms", &T::output_rms},
                    Field{"zero_passes", &T::zero_passes}};
}

auto fields(const CaseResult&) {
  using T = CaseResult;
  return std::tuple{Field{"name", &T::name},       Field{"size", &T::size},
                    Field{"sweep", &T::sweep},     Field{"binding", &T::binding},
                    Field{"figures", &T::figures}, Field{"fault", &T::fault}};
}

auto fields(const Verification&) {
  using T = Verification;
  return std::tuple{Field{"level", &T::level}, Field{"cases", &T::cases},
                    Field{"headroom", &T::headroom}, Field{"calls", &T::calls}};
}

/// Without the verification, which need not be there.
auto fields(const Fitness&) {
  using T = Fitness;
  return std::tuple{Field{"verdict", &T::verdict},   Field{"detail", &T::detail},
                    Field{"measured", &T::measured}, Field{"sizes", &T::sizes},
                    Field{"speedup", &T::speedup},   Field{"frail_speedup", &T::frail_speedup}};
}

/// What a request calls itself on the wire.
std::string_view name_of(const PrepareRequest&) {
  return "prepare";
}

auto fields(const PrepareRequest&) {
  using T = PrepareRequest;
  return std::tuple{Field{"backend", &T::backend},       Field{"device", &T::device},
                    Field{"problem", &T::problem},       Field{"sizes", &T::sizes},
                    Field{"input_seed", &T::input_seed}, Field{"reference", &T::reference}};
}

auto fields(const CardRates&) {
  using T = CardRates;
  return std::tuple{Field{"multiprocessors", &T::multiprocessors},
                    Field{"clock_mhz", &T::clock_mhz},
                    Field{"memory_clock_mhz", &T::memory_clock_mhz},
                    Field{"bus_bits", &T::bus_bits}, Field{"l2_bytes", &T::l2_bytes}};
}

auto fields(const PrepareResponse&) {
  using T = PrepareResponse;
  return std::tuple{Field{"device_name", &T::device_name},
                    Field{"arch", &T::arch},
                    Field{"driver", &T::driver},
                    Field{"torch_version", &T::torch_version},
                    Field{"reference_precision", &T::reference_precision},
                    Field{"reference", &T::reference},
                    Field{"card", &T::card},
                    Field{"conditions_missing", &T::conditions_missing},
                    Field{"error", &T::error}};
}

std::string_view name_of(const JudgeRequest&) {
  return "judge";
}

auto fields(const JudgeRequest&) {
  using T = JudgeRequest;
  return std::tuple{Field{"library", &T::library},
                    Field{"id", &T::id},
                    Field{"sizes", &T::sizes},
                    Field{"stop_at_ms_ratio", &T::stop_at_ms_ratio},
                    Field{"best_ms", &T::best_ms},
                    Field{"calls", &T::calls},
                    Field{"count_sizes", &T::count_sizes}};
}

auto fields(const Contender&) {
  return std::tuple{Field{"id", &Contender::id}, Field{"library", &Contender::library}};
}

std::string_view name_of(const CompareRequest&) {
  return "compare";
}

auto fields(const CompareRequest&) {
  using T = CompareRequest;
  return std::tuple{Field{"contenders", &T::contenders}, Field{"sizes", &T::sizes},
                    Field{"blocks", &T::blocks}, Field{"cold_calls", &T::cold_calls}};
}

auto fields(const Conditions&) {
  using T = Conditions;
  return std::tuple{
      Field{"sm_clock_mhz", &T::sm_clock_mhz},   Field{"memory_clock_mhz", &T::memory_clock_mhz},
      Field{"temperature_c", &T::temperature_c}, Field{"power_w", &T::power_w},
      Field{"throttled", &T::throttled},         Field{"slowed", &T::slowed}};
}

auto fields(const BlockTimes&) {
  using T = BlockTimes;
  return std::tuple{Field{"size", &T::size}, Field{"contenders_ms", &T::contenders_ms},
                    Field{"reference_ms", &T::reference_ms}};
}

/// Without the conditions, which may be missing.
auto fields(const TimedBlock&) {
  return std::tuple{Field{"sizes", &TimedBlock::sizes},
                    Field{"repetitions", &TimedBlock::repetitions}};
}

auto fields(const CompareResponse&) {
  using T = CompareResponse;
  return std::tuple{Field{"verdict", &T::verdict}, Field{"detail", &T::detail},
                    Field{"culprit", &T::culprit}, Field{"blocks", &T::blocks},
                    Field{"cold_ms", &T::cold_ms}, Field{"empty_kernel_ms", &T::empty_kernel_ms},
                    Field{"leaving", &T::leaving}};
}

std::string_view name_of(const VerifyRequest&) {
  return "verify";
}

auto fields(const VerifyRequest&) {
  using T = VerifyRequest;
  return std::tuple{Field{"library", &T::library}, Field{"id", &T::id},
                    Field{"level", &T::level},     Field{"sizes", &T::sizes},
                    Field{"full", &T::full},       Field{"calls", &T::calls}};
}

auto fields(const VerifyResponse&) {
  using T = VerifyResponse;
  return std::tuple{Field{"verdict", &T::verdict}, Field{"detail", &T::detail},
                    Field{"verification", &T::verification}, Field{"leaving", &T::leaving}};
}

auto fields(const LaunchCounts&) {
  using T = LaunchCounts;
  return std::tuple{Field{"kernel", &T::kernel},
                    Field{"size", &T::size},
                    Field{"blocks", &T::blocks},
                    Field{"threads", &T::threads},
                    Field{"shared_bytes", &T::shared_bytes},
                    Field{"global_load_sectors", &T::global_load_sectors},
                    Field{"global_store_sectors", &T::global_store_sectors},
                    Field{"shared_load_wavefronts", &T::shared_load_wavefronts},
                    Field{"shared_store_wavefronts", &T::shared_store_wavefronts},
                    Field{"memory_instructions", &T::memory_instructions},
                    Field{"flops", &T::flops},
                    Field{"barriers", &T::barriers}};
}

auto fields(const JudgeResponse&) {
  return std::tuple{Field{"fitness", &JudgeResponse::fitness},
                    Field{"counts", &JudgeResponse::counts},
                    Field{"leaving", &JudgeResponse::leaving}};
}

template <typename T> void write(json& object, const T& value) {
  object = json::object();
  std::apply([&](auto... field) { ((object[field.name] = value.*field.member), ...); },
             fields(value));
}

template <typename T> void read(const json& object, T& value) {
  std::apply([&](auto... field) { (object.at(field.name).get_to(value.*field.member), ...); },
             fields(value));
}

template <typename T>
T known(std::optional<T> value, const std::string& text, const std::string& kind) {
  if (!value) {
    throw std::invalid_argument("unknown " + kind + " " + text);
  }
  return *value;
}

} // namespace

// Found by argument-dependent lookup, which does not look into unnamed namespaces.

static void to_json(json& text, Distribution distribution) {
  text = to_string(distribution);
}
static void from_json(const json& text, Distribution& distribution) {
  distribution = known(distribution_from(text.get<std::string>()), text, "distribution");
}

static void to_json(json& text, Modifier modifier) {
  text = to_string(modifier);
}
static void from_json(const json& text, Modifier& modifier) {
  modifier = known(modifier_from(text.get<std::string>()), text, "modifier");
}

static void to_json(json& text, Level level) {
  text = to_string(level);
}
static void from_json(const json& text, Level& level) {
  level = known(level_from(text.get<std::string>()), text, "level");
}

static void to_json(json& text, Verdict verdict) {
  text = to_string(verdict);
}
static void from_json(const json& text, Verdict& verdict) {
  verdict = known(verdict_from(text.get<std::string>()), text, "verdict");
}

static void to_json(json& text, Backend backend) {
  text = backend == Backend::Cuda ? "cuda" : "model";
}
static void from_json(const json& text, Backend& backend) {
  backend = text == "cuda" ? Backend::Cuda : Backend::Model;
}

static void to_json(json& object, const TensorSpec& tensor) {
  write(object, tensor);
}
static void from_json(const json& object, TensorSpec& tensor) {
  read(object, tensor);
}

static void to_json(json& object, const Case& chosen) {
  write(object, chosen);
}
static void from_json(const json& object, Case& chosen) {
  read(object, chosen);
}

static void to_json(json& object, const CaseFigures& figures) {
  write(object, figures);
}
static void from_json(const json& object, CaseFigures& figures) {
  read(object, figures);
}

static void to_json(json& object, const CaseResult& result) {
  write(object, result);
}
static void from_json(const json& object, CaseResult& result) {
  read(object, result);
}

static void to_json(json& object, const Verification& verification) {
  write(object, verification);
}
static void from_json(const json& object, Verification& verification) {
  read(object, verification);
}

static void to_json(json& object, const Monomial& monomial) {
  write(object, monomial);
}
static void from_json(const json& object, Monomial& monomial) {
  read(object, monomial);
}

static void to_json(json& object, const CardRates& rates) {
  write(object, rates);
}
static void from_json(const json& object, CardRates& rates) {
  read(object, rates);
}

static void to_json(json& object, const Contender& contender) {
  write(object, contender);
}
static void from_json(const json& object, Contender& contender) {
  read(object, contender);
}

static void to_json(json& object, const Conditions& conditions) {
  write(object, conditions);
}
static void from_json(const json& object, Conditions& conditions) {
  read(object, conditions);
}

static void to_json(json& object, const BlockTimes& times) {
  write(object, times);
}
static void from_json(const json& object, BlockTimes& times) {
  read(object, times);
}

void to_json(json& object, const Problem& problem) {
  write(object, problem);
  object["folder"] = problem.folder.string();
  object["seeds"] = json::array();
  for (const auto& seed : problem.seeds) {
    object["seeds"].push_back(seed.string());
  }
}

void from_json(const json& object, Problem& problem) {
  read(object, problem);
  problem.folder = object.at("folder").get<std::string>();
  problem.seeds.clear();
  for (const json& seed : object.at("seeds")) {
    problem.seeds.emplace_back(seed.get<std::string>());
  }
}

void to_json(json& object, const SizeResult& result) {
  write(object, result);
}
void from_json(const json& object, SizeResult& result) {
  read(object, result);
}

void to_json(json& object, const Fitness& fitness) {
  write(object, fitness);
  if (fitness.verification) {
    object["verification"] = *fitness.verification;
  }
}
void from_json(const json& object, Fitness& fitness) {
  read(object, fitness);
  fitness.verification.reset();
  if (object.contains("verification")) {
    fitness.verification = object["verification"].get<Verification>();
  }
}

void to_json(json& object, const PrepareRequest& request) {
  write(object, request);
}
void from_json(const json& object, PrepareRequest& request) {
  read(object, request);
}

void to_json(json& object, const PrepareResponse& response) {
  write(object, response);
}
void from_json(const json& object, PrepareResponse& response) {
  read(object, response);
}

void to_json(json& object, const JudgeRequest& request) {
  write(object, request);
}
void from_json(const json& object, JudgeRequest& request) {
  read(object, request);
}

void to_json(json& object, const CompareRequest& request) {
  write(object, request);
}
void from_json(const json& object, CompareRequest& request) {
  read(object, request);
}

void to_json(json& object, const TimedBlock& block) {
  write(object, block);
  if (block.conditions) {
    object["conditions"] = *block.conditions;
  }
}
void from_json(const json& object, TimedBlock& block) {
  read(object, block);
  const auto conditions = object.find("conditions");
  block.conditions =
      conditions == object.end() ? std::nullopt : std::optional(conditions->get<Conditions>());
}

void to_json(json& object, const CompareResponse& response) {
  write(object, response);
}
void from_json(const json& object, CompareResponse& response) {
  read(object, response);
}

void to_json(json& object, const LaunchCounts& counts) {
  write(object, counts);
}
void from_json(const json& object, LaunchCounts& counts) {
  read(object, counts);
}

void to_json(json& object, const JudgeResponse& response) {
  write(object, response);
}
void from_json(const json& object, JudgeResponse& response) {
  read(object, response);
}

void to_json(json& object, const VerifyRequest& request) {
  write(object, request);
}
void from_json(const json& object, VerifyRequest& request) {
  read(object, request);
}

void to_json(json& object, const VerifyResponse& response) {
  write(object, response);
}
void from_json(const json& object, VerifyResponse& response) {
  read(object, response);
}

void VerifyResponse::fail(Verdict failure, std::string sentence) {
  verdict = failure;
  detail = std::move(sentence);
}

void VerifyResponse::conclude(const std::string& vary) {
  const CaseResult* fault = verification.first_fault();
  verdict = fault == nullptr ? Verdict::Ok : Verdict::WrongAnswer;
  if (fault != nullptr) {
    detail = concat("in the case \"", fault->name, "\" at ", vary, " = ", fault->size, ", ",
                    fault->fault);
  }
}

void JudgeResponse::fail(Verdict verdict, std::string detail) {
  fitness = failed(verdict, std::move(detail));
  counts.clear();
}

void CompareResponse::fail(Verdict failed, std::string why) {
  *this = {};
  verdict = failed;
  detail = std::move(why);
}

namespace {

/// Tries the alternatives of Request in order.
template <std::size_t I = 0> Request decode_as(const json& message) {
  if constexpr (I < std::variant_size_v<Request>) {
    using Alternative = std::variant_alternative_t<I, Request>;
    return message.at("ask") == name_of(Alternative()) ? message.get<Alternative>()
                                                       : decode_as<I + 1>(message);
  } else {
    throw std::invalid_argument("unknown request " + message.at("ask").dump());
  }
}

} // namespace

json encode(const Request& request) {
  return std::visit(
      [](const auto& asked) {
        json message = asked;
        message["ask"] = name_of(asked);
        return message;
      },
      request);
}

Request decode_request(const json& message) {
  return decode_as(message);
}

} // namespace evo
