# Asks a libsoftmax.so what it is and what it sees, as JSON on stdout. Run in a process of its own,
# so that the CUDA context it makes does not outlive it.
import ctypes
import json
import sys


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.softmax_build_info.restype = ctypes.c_char_p
    library.softmax_create.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int32]
    library.softmax_destroy.argtypes = [ctypes.c_void_p]
    library.softmax_handle_description.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.softmax_handle_description.restype = ctypes.c_size_t
    library.softmax_last_error.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.softmax_last_error.restype = ctypes.c_size_t

    answer = {"build_info": library.softmax_build_info().decode()}
    count = ctypes.c_int32(0)
    library.softmax_device_count(ctypes.byref(count))
    answer["devices"] = count.value
    if count.value > 0:
        text = ctypes.create_string_buffer(512)
        handle = ctypes.c_void_p()
        if library.softmax_create(ctypes.byref(handle), 0) == 0:
            library.softmax_handle_description(handle, text, len(text))
            library.softmax_destroy(handle)
            answer["device"] = text.value.decode()
        else:
            library.softmax_last_error(text, len(text))
            answer["error"] = text.value.decode()
    print(json.dumps(answer))


main()
