/* object_info.h - the text by which an object file that onnx-xla compile wrote can be recognised and described. */
#ifndef RUNTIME_PROGRAM_OBJECT_INFO_H
#define RUNTIME_PROGRAM_OBJECT_INFO_H

/* The text begins with this line and ends with a null character.  The lines after it are "key: value". */
#define RT_OBJECT_MARK "onnx-xla object, version 1\n"

#endif
