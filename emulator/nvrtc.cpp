// NVRTC: turns kernels in CUDA C++ into a C++ program, and lets the host's compiler compile it.
//
// The source is preprocessed first. Then `asm` becomes a call of a function of ptx.h, `__shared__`
// declares a reference to the block's shared memory, and every kernel gets an entry point.

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "image.h"

namespace {

using std::string;

// The functions of ptx.h, and whether they take inputs before outputs.
struct Function {
    const char* name;
    bool inputs_first = false;
};

// By the text of the instruction, with single spaces. Another instruction is an error: what it does
// must be written down in ptx.h first.
const string WGMMA_OUTPUTS =
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,"
    "%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, ";
const string WIDE_WGMMA_OUTPUTS = [] {
    string all = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0";
    for (int i = 1; i < 64; i++) all += ",%" + std::to_string(i);
    return all + "}, ";
}();
const std::map<string, Function> INSTRUCTIONS = {
    {"cvt.rn.bf16.f32 %0, %1;", {"round_one"}},
    {"cvt.rn.bf16x2.f32 %0, %1, %2;", {"round_two"}},
    {"ex2.approx.ftz.f32 %0, %1;", {"power_of_two"}},
    {"sqrt.approx.ftz.f32 %0, %1;", {"square_root"}},
    {"rcp.approx.ftz.f32 %0, %1;", {"reciprocal"}},
    {"cp.async.cg.shared.global [%0], [%1], 16, %2;", {"copy<16>"}},
    {"cp.async.ca.shared.global [%0], [%1], 4, %2;", {"copy<4>"}},
    {"cp.async.commit_group;", {"commit_copies"}},
    {"cp.async.wait_group %0;", {"wait_copies"}},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];", {"load_matrices"}},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];", {"load_transposed"}},
    {"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};", {"store_matrices"}},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
     "{%0,%1,%2,%3};",
     {"multiply"}},
    {"{ .reg .pred add; setp.ne.b32 add, %34, 0; " + WGMMA_OUTPUTS + "%32, %33, add, 1, 1, 0, 0; }",
     {"multiply_group_tiles", true}},
    {"{ .reg .pred add; setp.ne.b32 add, 1, 0; " + WGMMA_OUTPUTS +
         "{%32,%33,%34,%35}, %36, add, 1, 1, 1; }",
     {"multiply_group_registers", true}},
    {"{ .reg .pred add; setp.ne.b32 add, %66, 0; " + WIDE_WGMMA_OUTPUTS + "%64, %65, add, 1, 1, 0, %67; }",
     {"multiply_group_wide", true}},
    {"mbarrier.init.shared::cta.b64 [%0], %1;", {"begin_barrier"}},
    {"mbarrier.arrive.shared::cta.b64 _, [%0];", {"arrive"}},
    {"{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; selp.u32 %0, 1, 0, done; }",
     {"is_complete"}},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", {"arrive_before_bytes"}},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];",
     {"copy_box"}},
    {"fence.mbarrier_init.release.cluster;", {"nothing"}},
    {"setmaxnreg.inc.sync.aligned.u32 160;", {"nothing"}},
    {"setmaxnreg.dec.sync.aligned.u32 32;", {"nothing"}},
    {"wgmma.fence.sync.aligned;", {"nothing"}},
    {"wgmma.commit_group.sync.aligned;", {"nothing"}},
    {"wgmma.wait_group.sync.aligned %32;", {"nothing"}},
    {"wgmma.wait_group.sync.aligned %64;", {"nothing"}},
    {"fence.proxy.async.shared::cta;", {"nothing"}},
};

bool is_name(char c) { return std::isalnum((unsigned char)c) || c == '_'; }

// Reads C++ that was preprocessed, as far as it is needed here.
class Reader {
public:
    explicit Reader(const string& text) : text(text) {}

    // The text with everything translated.
    string translated() {
        string result;
        while (at < text.size()) {
            if (text[at] == '"') {
                size_t begin = at;
                quoted();
                result += text.substr(begin, at - begin);
            } else if (is_name(text[at])) {
                string word = name();
                if (word == "asm") result += instruction();
                else if (word == "__shared__") result += shared(false);
                else if (word == "extern" && next_is("__shared__")) result += shared(true);
                else if (word == "__global__") result += kernel();
                else result += word;
            } else {
                result += text[at++];
            }
        }
        return result + entries;
    }

private:
    const string& text;
    size_t at = 0;
    int declarations = 0;
    string entries;

    void space() {
        while (at < text.size() && std::isspace((unsigned char)text[at])) at++;
    }

    bool next_is(const char* what) {
        space();
        if (text.compare(at, strlen(what), what) != 0) return false;
        at += strlen(what);
        return true;
    }

    void expect(const char* what) {
        if (!next_is(what)) throw std::runtime_error(string("expected ") + what + ": " + text.substr(at, 80));
    }

    string name() {
        space();
        size_t begin = at;
        while (at < text.size() && is_name(text[at])) at++;
        return text.substr(begin, at - begin);
    }

    // A string literal, which starts here.
    string quoted() {
        string value;
        for (at++; text[at] != '"'; at++) {
            if (text[at] == '\\') {
                at++;
                value += text[at] == 'n' ? '\n' : text[at];
            } else {
                value += text[at];
            }
        }
        at++;
        return value;
    }

    // Everything up to the bracket that closes the one read before.
    string enclosed() {
        size_t begin = at;
        for (int depth = 1; depth > 0; at++) depth += (text[at] == '(') - (text[at] == ')');
        return text.substr(begin, at - 1 - begin);
    }

    // The operands after a colon.
    std::vector<string> operands() {
        std::vector<string> all;
        if (!next_is(":")) return all;
        for (space(); text[at] == '"'; space()) {
            quoted();
            if (next_is("(")) all.push_back(enclosed());
            next_is(",");
        }
        return all;
    }

    string instruction() {
        if (!next_is("volatile")) space();
        expect("(");
        string words;
        for (space(); text[at] == '"'; space()) words += quoted();
        auto outputs = operands(), inputs = operands();
        operands();
        expect(")");
        std::istringstream parts(words);
        string part, normal;
        while (parts >> part) normal += (normal.empty() ? "" : " ") + part;
        auto known = INSTRUCTIONS.find(normal);
        if (known == INSTRUCTIONS.end())
            throw std::runtime_error("the emulator does not know the instruction \"" + normal + "\"");
        auto [first, second] = known->second.inputs_first ? std::pair(inputs, outputs) : std::pair(outputs, inputs);
        first.insert(first.end(), second.begin(), second.end());
        string call = string("emulator::ptx::") + known->second.name + "(", comma;
        for (auto& operand : first) call += comma + operand, comma = ", ";
        return call + ")";
    }

    // `[__align__(n)] type name[sizes], …;`
    string shared(bool dynamic) {
        string alignment = "1", type, result;
        if (next_is("__align__")) {
            expect("(");
            alignment = enclosed();
        }
        std::vector<string> words;
        for (space(); is_name(text[at]); space()) words.push_back(name());
        for (size_t i = 0; i + 1 < words.size(); i++) type += words[i] + " ";
        for (string variable = words.back();; variable = name()) {
            size_t begin = at;
            while (text[at] != ',' && text[at] != ';') at++;
            string sizes = text.substr(begin, at - begin);
            if (dynamic) {
                result += type + "*" + variable + " = (" + type + "*)emulator::dynamic_shared();";
            } else {
                result += "auto& " + variable + " = emulator::shared_variable<" + type + sizes + ", " +
                          alignment + ", " + std::to_string(declarations++) + ">();";
            }
            if (text[at++] == ';') return result;
        }
    }

    // `__global__ void [__launch_bounds__(threads, …)] name`
    string kernel() {
        expect("void");
        string threads = "1024";
        if (next_is("__launch_bounds__")) {
            expect("(");
            threads = enclosed();
            threads = threads.substr(0, threads.find(','));
        }
        string kernel = name();
        entries += "\nEMULATE(" + kernel + ", " + threads + ")";
        return "void " + kernel;
    }
};

struct Program {
    string source, log;
    std::vector<char> image;
};

string read(const string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write(const string& path, const string& text) { std::ofstream(path, std::ios::binary) << text; }

// The folder of this library, where the headers are, too.
string own_folder() {
    Dl_info info;
    dladdr((void*)own_folder, &info);
    string path = info.dli_fname;
    return path.substr(0, path.rfind('/'));
}

class Folder {
public:
    string path;

    Folder() {
        const char* parent = getenv("TMPDIR");
        string name = string(parent ? parent : "/tmp") + "/f2-kernels-XXXXXX";
        if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
        path = name;
    }

    ~Folder() {
        for (const char* name : {"/f2.cpp", "/f2.ii", "/f2.so", "/log"}) unlink((path + name).c_str());
        rmdir(path.c_str());
    }
};

void run(const Folder& folder, const string& command) {
    string whole = command + " 2>'" + folder.path + "/log'";
    if (system(whole.c_str()) != 0) throw std::runtime_error(read(folder.path + "/log"));
}

void compile(Program& program, int count, const char* const* options) {
    string flags = "-std=c++20 -w";
    for (int i = 0; i < count; i++) {
        string option = options[i];
        if (option.rfind("-D", 0) == 0) flags += " '" + option + "'";
        if (option == "--gpu-architecture=sm_90a") flags += " -D__CUDA_ARCH_FEAT_SM90_ALL";
    }
    const char* named = getenv("CXX");
    string compiler = named && *named ? named : "c++";
    Folder folder;
    string base = folder.path + "/f2";
    write(base + ".cpp", program.source);
    run(folder, compiler + " " + flags + " -E -x c++ '" + base + ".cpp' -o '" + base + ".ii'");
    string text = read(base + ".ii");
    write(base + ".cpp", Reader(text).translated());
    string headers = own_folder();
    // Symbols of two programs in one process must not be merged.
    run(folder, compiler + " " + flags + " -O2 -march=native -ffp-contract=fast -fPIC -shared -fvisibility=hidden -fno-gnu-unique -include '" +
                    headers + "/kernel.h' '" + base + ".cpp' -o '" + base + ".so'");
    program.image = emulator::image_of(read(base + ".so"));
}

enum Result { SUCCESS = 0, INVALID_INPUT = 3, COMPILATION = 6 };

}  // namespace

extern "C" {

Result nvrtcVersion(int* major, int* minor) {
    *major = 13, *minor = 0;
    return SUCCESS;
}

const char* nvrtcGetErrorString(Result result) {
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

Result nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                          const char* const*) {
    *program = new Program{source, {}, {}};
    return SUCCESS;
}

Result nvrtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return SUCCESS;
}

Result nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    try {
        compile(*program, count, options);
        return SUCCESS;
    } catch (const std::exception& error) {
        program->log = error.what();
        return COMPILATION;
    }
}

Result nvrtcGetProgramLogSize(Program* program, size_t* size) {
    *size = program->log.size() + 1;
    return SUCCESS;
}

Result nvrtcGetProgramLog(Program* program, char* log) {
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return SUCCESS;
}

Result nvrtcGetCUBINSize(Program* program, size_t* size) {
    *size = program->image.size();
    return SUCCESS;
}

Result nvrtcGetCUBIN(Program* program, char* code) {
    memcpy(code, program->image.data(), program->image.size());
    return SUCCESS;
}
}
