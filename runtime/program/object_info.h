/* object_info.h - how to recognise and describe the files other than .oxla that `onnx-xla compile` writes: object
 * files, and the files with their weights. */
#ifndef RUNTIME_PROGRAM_OBJECT_INFO_H
#define RUNTIME_PROGRAM_OBJECT_INFO_H

/* An object file contains a text that begins with this line and ends with a null character.  Each further line of the
 * text is "key: value". */
#define RT_OBJECT_MARK "onnx-xla object, version 1\n"

/* The first bytes of a file with the weights of an object. */
#define RT_WEIGHTS_MARK "onnx-xla"

#endif
