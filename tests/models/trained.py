"""trained.py: trained ONNX models from wheels of PyPI, unchanged (tests/fetch-data fetches them)."""

from architecture import Input, add


def trained(name, file, inputs, sizes):
    add(f"trained/{name}", None, inputs, sizes, file=file)


TWO = [{"batch": 2}, {"batch": 1}]
FRAMES = [{"batch": 2, "frames": 30}, {"batch": 1, "frames": 41}]
PAPER = [{"batch": 2, "height": 64, "width": 96}, {"batch": 1, "height": 96, "width": 64}]
PADDLE = "rapidocr_onnxruntime/models/ch_"
trained("text-finder", PADDLE + "PP-OCRv4_det_infer.onnx", [Input("x", ("batch", 3, "height", "width"))], PAPER)
trained("text-reader", PADDLE + "PP-OCRv4_rec_infer.onnx", [Input("x", ("batch", 3, 48, "width"))], [{"batch": 2, "width": 96}, {"batch": 1, "width": 160}])
trained("text-direction", PADDLE + "ppocr_mobile_v2.0_cls_infer.onnx", [Input("x", ("batch", 3, 48, 192))], TWO)
STATE = Input("state", (2, "batch", 128), "small")
trained("silero-half", "silero_vad/data/silero_vad_half.onnx", [Input("input", ("batch", 576), "small"), STATE], TWO)
trained("silero-opset-15", "silero_vad/data/silero_vad_16k_op15.onnx", [Input("input", ("batch", 576), "small"), STATE, Input("sr", (), [16000])], TWO)
trained("nudenet", "nudenet/320n.onnx", [Input("images", ("batch", 3, "height", "width"), "uniform")], PAPER)
trained("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", [Input("serving_default_input_2:0", ("batch", 43844, 1), "small")], [{"batch": 1}])
trained("swift-f0", "swift_f0/model.onnx", [Input("audio", (1, "samples"), "small"), Input("fmin", (), [50.0]), Input("fmax", (), [900.0])],
        [{"samples": 4000}, {"samples": 5600}])  # fmt: skip
MOS = "speechmos/"
trained("dnsmos-background", MOS + "dnsmos_models/bak_ovr.onnx", [Input("input_1", ("batch", 901, 161))], TWO[1:])
trained("dnsmos-signal", MOS + "dnsmos_models/sig.onnx", [Input("input_1", ("batch", 901, 161))], TWO[1:])
trained("dnsmos-p808", MOS + "dnsmos_models/model_v8.onnx", [Input("input_1", ("batch", 900, 120))], TWO)
trained("dnsmos-wave", MOS + "dnsmos_models/sig_bak_ovr.onnx", [Input("input_1", ("batch", 144160), "small")], TWO[1:])
trained("plcmos", MOS + "plcmos_models/plcmos_v2.onnx", [Input("degraded_audio", ("batch", 1, "frames", 257)), Input("rater_embed", ("batch", 64))], FRAMES)
for name, file, width in [("a", "1663829550", 64), ("b", "1663915512", 64), ("c", "1668423760", 96)]:
    trained(f"aecmos-{name}", MOS + f"aecmos_models/Run_{file}_Stage_0.onnx",
            [Input("input", ("batch", 3, "frames", 160)), Input("h0", (4, 1, width))], [{"batch": 1, "frames": 30}, {"batch": 1, "frames": 44}])  # fmt: skip
