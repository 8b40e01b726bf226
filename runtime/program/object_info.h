/* object_info.h - how files that onnx-xla compile wrote beside .oxla files can be recognised and described. */
#ifndef RUNTIME_PROGRAM_OBJECT_INFO_H
#define RUNTIME_PROGRAM_OBJECT_INFO_H

/* An object file contains a text.  It begins with this line and ends with a null character.  The lines after it are
 * "key: value". */
#define RT_OBJECT_MARK "onnx-xla object, version 1\n"

/* The first bytes of a file with the weights of an object. */
#define RT_WEIGHTS_MARK "onnx-xla"

#endif
