// softmax info: the version, the build, the devices, and which device takes which algorithm.
#include <memory>
#include <vector>

#include "commands.h"
#include "device.h"
#include "error.h"
#include "table.h"

namespace tool {
namespace {

constexpr softmax_algo_t kLastAlgo = SOFTMAX_ALGO_REFERENCE;

// Empty where the device takes the algorithm, else the library's reason, without the algorithm's
// name before it and the advice behind it: both are in the table.
std::string refusal(const Device &device, softmax_algo_t algo) {
  softmax_desc_t desc;
  check(softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, SOFTMAX_DTYPE_F32, 1, 1));
  softmax_choice_t choice{};
  choice.struct_size = sizeof choice;
  const softmax_status_t status = softmax_select(device.handle(), algo, &desc, &choice);
  if (status == SOFTMAX_SUCCESS) return "";
  if (status != SOFTMAX_STATUS_NOT_SUPPORTED_ALGO) check(status);
  std::string reason = last_library_error();
  const std::string prefix = std::string(softmax_algo_name(algo)) + ": ";
  if (reason.compare(0, prefix.size(), prefix) == 0) reason.erase(0, prefix.size());
  return reason.substr(0, reason.find(';'));
}

struct DeviceColumn {
  std::string name;
  std::unique_ptr<Device> device;
};

std::string algorithm_table(const std::vector<DeviceColumn> &devices) {
  std::vector<std::string> header{"number", "algorithm"};
  std::vector<bool> right_aligned{true, false};
  for (const DeviceColumn &column : devices) {
    header.push_back(column.name);
    right_aligned.push_back(false);
  }
  header.push_back("");
  right_aligned.push_back(false);
  std::vector<std::vector<std::string>> lines{header};
  for (softmax_algo_t algo = SOFTMAX_ALGO_AUTO; algo <= kLastAlgo; ++algo) {
    if (softmax_algo_name(algo) == nullptr) continue;
    std::vector<std::string> line{fmt::format("{}", algo), softmax_algo_name(algo)};
    std::string why;
    for (const DeviceColumn &column : devices) {
      const std::string reason = refusal(*column.device, algo);
      line.push_back(reason.empty() ? "yes" : "no");
      if (why.empty()) why = reason;
    }
    line.push_back(why);
    lines.push_back(line);
  }
  return lay_out(lines, right_aligned);
}

void info() {
  std::string text = std::string(softmax_build_info()) + "\n\nDevices\n";
  std::vector<DeviceColumn> devices;
  devices.push_back({"cpu", std::make_unique<Device>(SOFTMAX_DEVICE_CPU)});
  text += fmt::format("  cpu     {}\n", devices[0].device->description());
  std::int32_t count = 0;
  check(softmax_device_count(&count));
  for (std::int32_t k = 0; k < count; ++k) {
    const std::string name = fmt::format("cuda:{}", k);
    try {
      auto device = std::make_unique<Device>(k);
      text += fmt::format("  {:<6}  {}\n", name, device->description());
      devices.push_back({name, std::move(device)});
    } catch (const Error &error) {  // one bad GPU must not hide the others
      text += fmt::format("  {:<6}  not usable: {}\n", name, error.what());
    }
  }
  if (count == 0) text += "  no CUDA device\n";
  text += fmt::format("  auto is {}\n\nAlgorithms\n{}", Device(SOFTMAX_DEVICE_AUTO).description(),
                      algorithm_table(devices));
  print_out(text);
}

}  // namespace

void add_info(CLI::App &app) {
  CLI::App *command = app.add_subcommand(
      "info", "The version, the build, the devices, and which of them takes which algorithm");
  command->footer("An algorithm that a device does not take has the library's reason beside it.");
  command->callback(info);
}

}  // namespace tool
